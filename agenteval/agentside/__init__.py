"""What runs in the agent's process, agenteval's own or that of an interpreter of the author's.

Nothing in here imports anything but the standard library and its neighbours, and all of it is written for
Python 3.8: ``start.py`` is run by path where nothing of agenteval is installed.
"""
