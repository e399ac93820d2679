"""Plan a comparison: rows, power, and the detectable gap."""
