"""Claims on a reader's own network."""
