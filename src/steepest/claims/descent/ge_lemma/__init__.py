"""The claim ge-lemma."""
