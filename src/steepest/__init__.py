"""Steepest puts the theory of deep learning to the test."""

__version__ = "0.1.0"
