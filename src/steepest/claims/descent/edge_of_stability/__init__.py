"""The claim edge-of-stability: what it says, its experiment at one point, and its version for a reader's network."""
