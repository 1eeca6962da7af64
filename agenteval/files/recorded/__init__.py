"""Recorded conversations: files, in the shapes that are common, become scenarios and trajectories.

``messages`` knows the shapes of a message, ``calls``, ``results`` and ``texts`` those of what is in it,
``written`` and ``inputs`` calls that stand in a text; ``turns`` makes turns of them. ``exchanges`` finds
the messages of a record, ``responses`` and ``streams`` what came back to a request, ``spans`` and
``traces`` what a tracer kept, ``growing`` logs that go on from one another. ``conversation`` reads one
record, ``files`` and ``entries`` find the records in files, ``repeated`` those that say a thing twice,
``journals`` reads our own, ``fields`` follows dotted paths, ``identity`` names what was read and ``suite``
adds what an author expects.
"""
