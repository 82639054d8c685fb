"""The claim perceptron-mistakes."""
