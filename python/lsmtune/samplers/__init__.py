"""Search strategies by name. A new one is one file with a `KIND` and one line of `registry`."""

from lsmtune.samplers.exhausted import SpaceExhaustedError
from lsmtune.samplers.kind import SamplerContext, SamplerKind, Setting
from lsmtune.samplers.mirror import TrialJudgement, ValueNoise
from lsmtune.samplers.registry import (
    SAMPLERS,
    check_sampler,
    check_settings,
    sampler_kind,
)
from lsmtune.samplers.searcher import OUTCOME, PUT_BACK, Proposal, Searcher

__all__ = [
    "OUTCOME",
    "PUT_BACK",
    "SAMPLERS",
    "Proposal",
    "SamplerContext",
    "SamplerKind",
    "Searcher",
    "Setting",
    "SpaceExhaustedError",
    "TrialJudgement",
    "ValueNoise",
    "check_sampler",
    "check_settings",
    "sampler_kind",
]
