"""Eigenvalues of kernels on spheres, on cubes and of random matrices."""
