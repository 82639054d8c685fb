"""What becomes of signals in depth, and how to start so that they live."""
