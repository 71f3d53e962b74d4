"""Chains on Markov logic networks that look for modes."""
