"""The study's folder: marker, lock, Optuna study, measurements, scratch directories."""
