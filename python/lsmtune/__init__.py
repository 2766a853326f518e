"""lsmtune finds, proves and ships the right configuration of an LSM key-value store."""

__version__ = "0.1.0"
