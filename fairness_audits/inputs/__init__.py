"""Loading, probing and checking of a user's model and table."""
