"""The claim langevin-metastability: what it says, and its experiment at one point."""
