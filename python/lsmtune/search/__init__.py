"""How a space is searched: samplers and pruners by name, and the searcher that asks them."""
