"""The results as JSON, and their JSON Schema."""
