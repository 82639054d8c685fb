"""The claim mean-field-steps."""
