"""Readers that make a `MarkovLogic`, its evidence and its queries."""
