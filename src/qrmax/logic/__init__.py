"""Propositional guards and temporal logic on finite traces, compiled to minimal DFAs."""
