"""HTTP: connections, limits, retries, and whose fault a failure is."""
