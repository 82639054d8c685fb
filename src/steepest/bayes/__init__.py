"""Bayes: exact posteriors and evidences, and samplers that check them."""
