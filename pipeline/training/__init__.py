"""How networks are trained, for the methods."""
