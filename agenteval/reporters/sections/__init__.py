"""The parts of a report, made once from report and decision; each format has a printer of them."""
