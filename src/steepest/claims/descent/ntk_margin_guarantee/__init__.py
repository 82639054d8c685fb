"""The claim ntk-margin-guarantee: what it says, and its experiment at one point."""
