"""Exact lifted counting for Markov logic of at most two logical variables."""
