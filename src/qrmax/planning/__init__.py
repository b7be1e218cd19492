"""Solving what is known: exact values, policies and their evaluation."""
