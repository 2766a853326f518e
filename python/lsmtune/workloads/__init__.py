"""Workloads: named ones, YCSB, files, and the distributions that they draw from."""
