"""The claim rotational-equilibrium: what it says, its experiment and its theory."""
