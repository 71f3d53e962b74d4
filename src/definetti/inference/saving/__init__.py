"""Runs that stop and go on: what a checkpoint holds, and the same call once more from there."""
