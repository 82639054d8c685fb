"""Random arrangements of hyperplanes, and influences in graphs."""
