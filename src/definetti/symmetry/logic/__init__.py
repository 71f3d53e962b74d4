"""Symmetries of a Markov logic network: a group that permutes constants."""
