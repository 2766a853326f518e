"""Simulations that show how often a verdict of lsmtune is wrong."""
