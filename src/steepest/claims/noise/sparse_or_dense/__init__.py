"""The claim sparse-or-dense."""
