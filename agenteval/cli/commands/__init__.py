"""The ``agenteval`` commands, one per module. A module is imported only when its command is called."""
