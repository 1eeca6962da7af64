"""From events to a report, from a report to a decision. Pure."""
