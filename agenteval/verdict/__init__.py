"""Build a report from events and a decision from a report. Pure."""
