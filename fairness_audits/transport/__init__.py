"""Maps from the rows of one group to those of another: one module for each kind, and what they share."""
