"""The version of the package, which ``pyproject.toml`` reads from here, and the address of its documentation."""

__version__ = "0.1.0"
DOCUMENTATION = ""
"""Address of the published documentation, without a slash at its end. Empty: pages name its files, without links."""
