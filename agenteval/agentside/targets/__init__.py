"""Find and call the author's Python code."""
