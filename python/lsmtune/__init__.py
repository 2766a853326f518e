"""lsmtune finds, proves and ships the right configuration of an LSM key-value store.

What a program may use is loaded when it is first used, so that neither the command line nor a
program that is a trial waits for libraries that it has no use for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsmtune import trial
    from lsmtune.errors import InputError as InputError
    from lsmtune.errors import LsmtuneError as LsmtuneError
    from lsmtune.search.sampler import SpaceExhaustedError
    from lsmtune.study.ask_and_tell import FinishedTrial, Search, Trial

__version__ = "0.1.0"
__all__ = [
    "FinishedTrial",
    "InputError",
    "LsmtuneError",
    "Search",
    "SpaceExhaustedError",
    "Trial",
    "__version__",
    "trial",
]

# Where a name comes from; `trial` is a module itself.
_MODULES = {
    "FinishedTrial": "lsmtune.study.ask_and_tell",
    "InputError": "lsmtune.errors",
    "LsmtuneError": "lsmtune.errors",
    "Search": "lsmtune.study.ask_and_tell",
    "SpaceExhaustedError": "lsmtune.search.sampler",
    "Trial": "lsmtune.study.ask_and_tell",
    "trial": "lsmtune.trial",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_MODULES[name])
    return module if name == "trial" else getattr(module, name)
