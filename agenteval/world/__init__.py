"""The state of a scenario: an in-memory SQLite database, with one copy per sample. The engine is SQLite's;
this room restricts it, makes it repeatable, and reports mistakes in the language of authors."""
