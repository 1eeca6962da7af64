"""The author's Python, found and called."""
