"""Tables, plots and pictures."""
