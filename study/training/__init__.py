"""One trial: a configuration and a data set in, metrics per epoch out. No Ray, no Optuna, no MLflow."""
