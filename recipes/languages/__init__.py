"""What tells languages apart: n-gram profiles, and the mean vector of each under an encoder."""
