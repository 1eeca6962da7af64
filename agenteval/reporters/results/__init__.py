"""The results as JSON, and the JSON Schema of the results."""
