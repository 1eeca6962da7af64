"""Logs become conversations, by the ids that they hold, and say what they left out.

Other rooms enter by two doors: ``logs`` (recorded conversations in files) and ``live_traces`` (the spans that
an agent exports while it is played). Everything else may stay closed.
"""
