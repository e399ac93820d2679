"""A user's model and table: loading, probing and checking."""
