"""Agents that plan for episodes of a fixed horizon: UCBVI, PSRL and OPSRL."""
