"""fjall as an engine of lsmtune: where its library is; the library itself says all else."""

from pathlib import Path

from lsmtune.engines.library import PluginEngine

LIBRARY = Path(__file__).parent / "libfjall_lsmtune.so"
ENGINE = PluginEngine("fjall", lambda: LIBRARY)
