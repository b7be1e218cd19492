"""One run: an agent, a problem, and when to stop."""
