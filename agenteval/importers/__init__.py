"""Imports logs: groups their records into conversations by id, and reports content that could not be read.

Other packages use two modules: ``logs`` (recorded conversations in files) and ``live_traces`` (the spans that
an agent exports during a run). All other modules are internal."""
