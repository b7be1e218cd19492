"""Shapes, texts and scales: pictures that know nothing of what they show."""
