"""Proof: pairs, verdicts, calibration, the crash test, and the fewest options that keep a gain."""
