"""Exact engines for factor graphs."""
