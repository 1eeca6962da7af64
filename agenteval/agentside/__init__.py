"""Code that runs in the agent's process: agenteval's own, or that of an interpreter that the author names.

Nothing in here imports anything but the standard library and its neighbours, and all of it is written for
Python 3.8: ``start.py`` is run by path in interpreters that have no agenteval installed."""
