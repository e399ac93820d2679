"""The result of an audit and its renderings: terminal, page, JSON, CSV and figures."""
