"""Databases that are loaded once, and the copies that runs start from.

A *golden database* is what the load and settle phases of a workload left behind, kept closed and
unchanged; the database of a run is a copy of it that shares its tables.
"""

from lsmtune.databases.cache import DatabaseCache
from lsmtune.databases.observer import CacheObserver, Preparation

__all__ = ["CacheObserver", "DatabaseCache", "Preparation"]
