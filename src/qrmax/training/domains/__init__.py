"""Domains, which agents are trained on: one protocol, one file for each kind."""
