"""Kernels of fully connected networks: the recursion, tabulated or layer by layer."""
