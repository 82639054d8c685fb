"""The claim mean-field-limit."""
