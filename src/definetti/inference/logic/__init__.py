"""Preparing, asking and concluding for Markov logic networks."""
