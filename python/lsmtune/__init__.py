"""lsmtune finds, proves and ships the right configuration of an LSM key-value store.

What a program may use is loaded when it is first used, so that neither the command line nor a
program that is a trial waits for libraries that it has no use for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsmtune import trial as trial
    from lsmtune.errors import InputError as InputError
    from lsmtune.errors import LsmtuneError as LsmtuneError
    from lsmtune.samplers import SpaceExhaustedError as SpaceExhaustedError
    from lsmtune.search import FinishedTrial as FinishedTrial
    from lsmtune.search import Search as Search
    from lsmtune.search import Trial as Trial

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
    "FinishedTrial": "lsmtune.search",
    "InputError": "lsmtune.errors",
    "LsmtuneError": "lsmtune.errors",
    "Search": "lsmtune.search",
    "SpaceExhaustedError": "lsmtune.samplers",
    "Trial": "lsmtune.search",
    "trial": "lsmtune.trial",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_MODULES[name])
    return module if name == "trial" else getattr(module, name)
