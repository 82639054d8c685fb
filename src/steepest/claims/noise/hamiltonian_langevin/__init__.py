"""The claim hamiltonian-langevin: what it says, and its experiments."""
