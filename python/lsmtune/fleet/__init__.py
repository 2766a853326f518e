"""Many hosts: each measures one run at a time, and the tuner alone stores what they observe."""
