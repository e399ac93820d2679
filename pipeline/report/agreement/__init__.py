"""The fifth study: whether the audits of the four papers agree about the same models."""
