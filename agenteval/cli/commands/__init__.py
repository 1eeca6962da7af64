"""The commands of the command line, one in each module. A module is imported only when its command is called."""
