"""Kernels of finite networks: empirical, sampled, expanded, and corrected to first order in the width."""
