"""Chains on factor graphs that look for modes."""
