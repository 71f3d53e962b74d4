"""Preparing, asking and concluding for factor graphs."""
