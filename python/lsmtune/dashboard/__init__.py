"""The live page: studies in a browser while they run, from the parts of their reports."""
