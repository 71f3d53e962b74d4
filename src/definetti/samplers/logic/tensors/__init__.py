"""Atoms as bits: the arrays that a relational kernel reads, and the state of one chain."""
