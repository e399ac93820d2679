"""What an audit found, and its renderings: terminal, page, JSON, CSV and figures."""
