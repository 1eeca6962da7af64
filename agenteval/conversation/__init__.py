"""Run a multi-turn conversation, including its user, the agent's turns, the simulated tools and the author's
code."""
