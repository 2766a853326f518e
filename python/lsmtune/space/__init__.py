"""The space of a search: parameters, conditions, constraints, and their form in Optuna."""
