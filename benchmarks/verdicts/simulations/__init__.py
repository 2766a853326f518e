"""Simulations that show how often a verdict is wrong."""
