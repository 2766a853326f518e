"""What everything is made of: frozen types, and how they are read and written. No I/O but files
that people write."""
