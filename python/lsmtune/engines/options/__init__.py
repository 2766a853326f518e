"""Option catalogues: what each engine's options mean, where to search them, what they risk.

One data file per engine (`rocksdb.yaml`, `leveldb.yaml`), read and checked by `info.py`.
"""

from lsmtune.engines.options.defaults import catalogue_defaults
from lsmtune.engines.options.info import OptionInfo, option_catalogue

__all__ = ["OptionInfo", "catalogue_defaults", "option_catalogue"]
