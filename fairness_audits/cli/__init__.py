"""The command ``fairness-audits``."""
