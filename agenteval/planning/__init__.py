"""Run planning: loads files and options, resolves them to a plan, and replaces names with objects."""
