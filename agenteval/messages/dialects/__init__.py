"""Logs in a form of their own: a file for each, with an ``importer`` that is found as those of others are."""
