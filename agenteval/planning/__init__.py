"""What is run, and with what: files and options become a plan, and names become objects."""
