"""Analyses of the buckets of agents: size, purity, and planning on them."""
