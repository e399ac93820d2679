"""The plan of a comparison: rows, power, and the gap that is detected."""
