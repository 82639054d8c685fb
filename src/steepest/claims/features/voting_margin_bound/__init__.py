"""The claim voting-margin-bound."""
