"""Doctests: modules that cannot be imported without an extra are left out where it is missing."""

import importlib.util

collect_ignore = []
if importlib.util.find_spec("stable_baselines3") is None:
    collect_ignore.append("qrmax/sb3.py")
