"""Renderings of an AuditDocument: for the terminal, as a page, and as data (JSON and CSV)."""
