"""Learned policies: one protocol, one file for each kind."""
