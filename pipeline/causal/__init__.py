"""The causal model of the law-school data."""
