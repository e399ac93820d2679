"""Training of networks, used by the methods."""
