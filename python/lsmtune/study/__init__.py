"""The loop of a study: ask, run, store, tell; resume; it ends in a proof."""
