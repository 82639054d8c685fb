"""Tests of the exact posteriors and of the samplers that check them."""
