"""Networks: activations, architectures and their limits, losses, distributions of examples."""
