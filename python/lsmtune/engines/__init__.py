"""Engine libraries: where they are, how they were built, how to get one; config exporters."""
