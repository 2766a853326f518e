"""Other programs that perform runs: db_bench, YCSB-cpp, ekvsb, or any command."""
