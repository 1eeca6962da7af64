"""Wording that several reporters share."""
