"""Files of authors and of runs, and the values in them. Every mistake is reported at its place."""
