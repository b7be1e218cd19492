"""Agents for real-valued observations: an encoder in front of a tabular agent."""
