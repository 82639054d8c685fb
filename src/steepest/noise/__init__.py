"""Noise: stochastic gradients, random walkers, and the exact laws that they are compared with."""

from ._chains import stationary as stationary
