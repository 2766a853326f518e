"""Paired, interleaved verification and its verdict."""
