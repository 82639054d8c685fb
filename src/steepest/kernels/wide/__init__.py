"""Kernels of infinitely wide networks of any architecture: nodes, positions, displacements."""

from steepest.kernels.wide._function import kernel_function as kernel_function
from steepest.kernels.wide._positions import Positions as Positions
