"""Run one multi-turn conversation: the user, the agent's turn, the simulated tools, the author's code."""
