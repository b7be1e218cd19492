"""Reward machines: edges, tables, checks, equivalence, shaping and file formats."""
