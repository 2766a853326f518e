"""Runners: ways to perform a run, each a process of its own that cannot harm the tuner."""
