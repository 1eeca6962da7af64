"""HTTP transport: connections, rate limits, retries, and who is at fault for a failure."""
