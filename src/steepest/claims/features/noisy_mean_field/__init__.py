"""The claim noisy-mean-field."""
