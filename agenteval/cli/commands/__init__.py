"""The commands of the command line, one per module. A module is imported only when its command is called."""
