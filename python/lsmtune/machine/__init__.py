"""What this machine is and does: read from /proc and /sys, never guessed."""
