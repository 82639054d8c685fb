"""What users call: the Python interface and the command line."""
