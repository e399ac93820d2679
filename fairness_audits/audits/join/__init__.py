"""Pooling of the parts of a loss-ratio audit into one test of all rows."""
