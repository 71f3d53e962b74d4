"""Draws that leave the house and draws that come in: `sample`, its files, samples of other programs."""
