"""Wording shared by several report formats."""
