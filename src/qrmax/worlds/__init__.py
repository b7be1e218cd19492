"""Worlds: families of MDPs with a labelling function, and Gymnasium environments."""
