"""SMAC as a sampler of lsmtune."""
