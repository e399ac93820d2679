"""The audits: statistics on arrays, settings, and the way from inputs to a result."""
