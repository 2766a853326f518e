"""A contest: configurations of several teams, one workload, rounds; who is proved better, where."""
