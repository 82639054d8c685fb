"""The claim least-squares-min-norm."""
