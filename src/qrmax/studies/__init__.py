"""Many runs: studies, sweeps, results, statistics."""
