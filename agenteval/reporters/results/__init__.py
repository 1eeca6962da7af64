"""The results as JSON, and their schema."""
