"""Reports of what an experiment measured: tables, sentences and figures, in every format."""
