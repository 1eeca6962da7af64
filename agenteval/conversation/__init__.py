"""One conversation is played: the user, the agent's turn, the tool world, the author's code."""
