"""The claim ntk-depth-to-width."""
