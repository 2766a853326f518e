"""Option catalogues: what each engine's options mean, where to search them, what they risk.

One data file per engine (`rocksdb.yaml`, `leveldb.yaml`), read and checked by `info.py`.
"""

from lsmtune.engines.options.info import OptionInfo, option_catalogue

__all__ = ["OptionInfo", "option_catalogue"]
