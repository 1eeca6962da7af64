"""Samples are played by worker processes, on one or several machines.

Only ``ray_backend`` knows the engine that starts them."""
