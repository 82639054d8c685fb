"""The claim ntk-positive-definite."""
