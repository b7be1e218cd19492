"""Analyses of what agents have learned."""
