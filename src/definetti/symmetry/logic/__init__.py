"""Symmetries of a Markov logic network: a group that permutes constants, and predicates where the theory allows it."""
