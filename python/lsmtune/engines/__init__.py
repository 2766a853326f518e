"""Engines: their options, their libraries, their memory, and option files in and out."""
