"""The claim class-covariances: on networks of ours, and on a reader's own."""
