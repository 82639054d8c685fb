"""Expectations of activations under Gaussians: one, and pairs."""
