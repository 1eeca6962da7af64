"""Running: plays a prepared run, or scores a log. Events go to the journal, and the outcome is a report and
its decision. Nothing in this package prints."""
