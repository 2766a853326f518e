"""An experiment: its folder, its store, the measurer, loaded databases, and schedules of runs."""
