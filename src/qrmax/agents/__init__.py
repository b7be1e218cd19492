"""Learners, one algorithm per file."""
