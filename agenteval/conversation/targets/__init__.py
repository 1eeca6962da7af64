"""The author's Python, found and called: code that also runs in an agent's own interpreter.

Nothing in here imports anything but the standard library and its neighbours, and all of it is written for
Python 3.8: ``start.py`` is run by path where nothing of agenteval is installed.
"""
