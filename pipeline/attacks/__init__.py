"""Maps from points to points that a classifier treats worse."""
