"""The driver: Optuna suggests, Ray Tune places, early stopping prunes, the ledger remembers."""

# What a driver does while no trial runs, as shown to users.

LOADING = "loading data"
STARTING = "starting Ray"
PREPARING = "preparing data"
REPORTING = "writing the report"
STEPS = (LOADING, STARTING, PREPARING, REPORTING)

STOPPING = "stopping; trials that run go on from their checkpoints later. Ctrl-C once more: at once"
"""Message that is printed as soon as a signal has come."""
