"""Symmetries: a group of the model, its orbits, and how they are found and checked."""
