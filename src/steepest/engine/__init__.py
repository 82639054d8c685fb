"""Runs, results on disk, fingerprints of code, workers, sweeps."""
