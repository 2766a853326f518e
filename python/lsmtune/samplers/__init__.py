"""Search strategies by name. A new one is one factory and one line of `SAMPLERS`."""

from lsmtune.samplers.registry import SAMPLERS, make_sampler

__all__ = ["SAMPLERS", "make_sampler"]
