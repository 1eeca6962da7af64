"""Message formats of agent frameworks, both in their logs and in the messages that agents return."""
