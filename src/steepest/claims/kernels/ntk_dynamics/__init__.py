"""The claim ntk-dynamics."""
