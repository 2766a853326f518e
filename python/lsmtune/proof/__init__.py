"""Proof: pairs, verdicts, calibration, what a finalist survives, and the fewest options."""
