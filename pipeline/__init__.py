"""The experiments: everything that regenerates the four papers with the library ``fairness_audits``."""
