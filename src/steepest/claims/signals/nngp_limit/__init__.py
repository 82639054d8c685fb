"""The claim nngp-limit."""
