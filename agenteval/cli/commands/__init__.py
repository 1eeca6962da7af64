"""One module for each command of the command line. A module is imported only when its command is called."""
