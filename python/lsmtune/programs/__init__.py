"""Programs that people trust: how each is called, and what it prints. No process starts here."""
