"""Frozen dataclasses that cross rooms. No I/O, and nothing but the standard library."""
