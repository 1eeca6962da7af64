"""Build a report from the events of a run, and decide the verdict (passed, failed, inconclusive) from the
report. Pure."""
