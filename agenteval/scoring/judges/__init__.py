"""What a model is asked about a conversation, and what its answers are worth."""
