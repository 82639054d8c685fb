"""The claim langevin-gibbs: what it says, and its experiment at one point."""
