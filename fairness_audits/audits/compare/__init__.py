"""Compare two versions of a model on the same rows."""
