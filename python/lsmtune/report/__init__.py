"""Reports of a stored study: HTML, Markdown, JSON, CSV. Computes no statistics."""
