"""Converts logs to conversations by the ids in them, and reports what they omit.

Other packages use two modules: ``logs`` (recorded conversations in files) and ``live_traces`` (the spans that
an agent exports while a run plays it). All other modules are internal."""
