"""The claim burer-monteiro."""
