"""The claim compressed-sensing: what it says, and its experiment at one point."""
