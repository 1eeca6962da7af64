"""Everything that judges a conversation: checks in code, detectors, and judges that ask a model.

A scorer is a value with a ``scope`` and an ``async __call__(scenario, trajectory)`` (see
``agenteval.protocols.Scorer``). The checks in code are pure functions in ``arguments``,
``tool_calls``, ``text`` and ``expectations``; import them from there.
"""
