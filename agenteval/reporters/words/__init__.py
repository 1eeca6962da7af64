"""Wording that several report formats share."""
