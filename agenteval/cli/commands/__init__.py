"""One module for each command of the command line; they are imported when they are called."""
