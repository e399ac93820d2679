"""The same rows under two versions of a model."""
