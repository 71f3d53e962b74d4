"""Exact answers: enumeration, elimination on a junction tree, and the choice between them."""
