"""What is wanted: guards, reward machines, and the files they live in."""
