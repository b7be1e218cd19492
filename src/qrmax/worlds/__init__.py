"""Where it happens: worlds with discrete states and actions."""
