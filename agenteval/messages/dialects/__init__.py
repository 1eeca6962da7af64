"""Logs whose messages stand in a form of their own: a file for each."""
