"""The sections of a report, built once from report and decision. Each format prints them in its own way."""
