"""Symmetries of a factor graph: a group that permutes literals."""
