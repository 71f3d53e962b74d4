"""Readers that make a `FactorGraph`."""
