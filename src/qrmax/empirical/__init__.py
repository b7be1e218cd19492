"""Empirical models: transition counts and mean rewards."""
