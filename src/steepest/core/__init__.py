"""The vocabulary: arrays, intervals, checks, hypotheses, fields, panels, verdicts. Nothing here imports JAX."""
