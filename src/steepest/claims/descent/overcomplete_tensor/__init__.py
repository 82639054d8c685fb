"""The claim overcomplete-tensor: what it says, and its experiment at one point."""
