"""The sections of a report, built once from the report and its decision. Each format renders the sections in
its own way."""
