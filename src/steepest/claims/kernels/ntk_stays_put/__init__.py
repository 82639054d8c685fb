"""The claim ntk-stays-put."""
