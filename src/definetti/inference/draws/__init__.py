"""Draws as output and as input: `sample`, its files, samples of other programs."""
