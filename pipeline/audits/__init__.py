"""The audits of the studies, one plug-in each: ``Config`` and ``run``."""
