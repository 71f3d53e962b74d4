"""Compiled inner loops on factor graphs."""
