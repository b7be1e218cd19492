"""Training runs: an agent, a problem, and a stopping rule."""
