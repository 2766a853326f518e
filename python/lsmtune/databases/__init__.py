"""Databases that are loaded once, and the copies that runs start from."""
