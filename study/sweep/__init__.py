"""The driver: Optuna suggests, Ray Tune places, ASHA stops, the ledger remembers."""
