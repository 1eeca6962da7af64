"""Recorded conversations: files, in the shapes that are common, become scenarios and trajectories.

``messages`` knows the shapes of a message, ``turns`` makes turns of messages, ``conversation`` reads one
record, ``files`` finds the records in files, ``journals`` reads our own, ``fields`` follows dotted paths,
``identity`` names what was read and ``suite`` adds what an author expects of it.
"""
