"""Exact planning: value iteration, backward induction, policy evaluation, replanning."""
