"""The claim ntk-concentration."""
