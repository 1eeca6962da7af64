"""Code that runs in the agent's process, which is either agenteval's own process or an interpreter that the
author specifies.

Modules in this package import only the standard library and each other. They are written for Python 3.8,
because ``start.py`` is run by path in interpreters that do not have agenteval installed."""
