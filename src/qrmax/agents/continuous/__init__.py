"""Model-based agents for real-valued observations, without buckets: laws, obstacles, labels."""
