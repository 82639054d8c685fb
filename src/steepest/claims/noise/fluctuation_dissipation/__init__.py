"""The claim fluctuation-dissipation: what it states, and its experiment."""
