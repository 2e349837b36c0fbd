"""The driver: Optuna suggests, Ray Tune places, ASHA stops, the ledger remembers."""

# What a driver does while no trial runs, in the words that a user sees.

LOADING = "loading data"
STARTING = "starting Ray"
PREPARING = "preparing data"
REPORTING = "writing the report"
STEPS = (LOADING, STARTING, PREPARING, REPORTING)

STOPPING = "stopping; trials that run go on from their checkpoints later. Ctrl-C once more: at once"
"""The line that is printed once a signal has come."""
