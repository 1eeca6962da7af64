"""Message formats of frameworks: of their logs, and of the messages that agents return."""
