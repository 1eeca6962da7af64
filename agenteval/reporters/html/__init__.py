"""Render the report as one HTML file (the page), which opens without a server and makes no request."""
