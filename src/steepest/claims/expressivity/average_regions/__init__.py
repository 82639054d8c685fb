"""The claim average-regions: what it says, and its experiment at one point."""
