"""RocksDB's query traces: what they hold, and the workloads that are like them."""
