"""Pruners by name: which trials end early. Optuna's own, with their settings checked."""

from lsmtune.pruners.registry import PRUNERS, PrunerKind, check_pruner, check_settings, make_pruner

__all__ = ["PRUNERS", "PrunerKind", "check_pruner", "check_settings", "make_pruner"]
