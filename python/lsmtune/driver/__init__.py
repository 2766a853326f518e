"""lsmtune's driver: its process, its messages, and two drivers in turns."""
