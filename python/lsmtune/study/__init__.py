"""A study: its file, the loop that searches and proves, and ask-and-tell from Python."""
