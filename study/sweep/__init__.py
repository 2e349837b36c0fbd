"""The driver: Optuna suggests, Ray Tune places, early stopping prunes, the ledger remembers."""

# What a driver does while no trial runs, as shown to users.

LOADING_DATA_STEP = "loading data"
STARTING_RAY_STEP = "starting Ray"
STARTING_TRIALS_STEP = "starting the first trials"
WRITING_REPORT_STEP = "writing the report"
DRIVER_STEPS = (LOADING_DATA_STEP, STARTING_RAY_STEP, STARTING_TRIALS_STEP, WRITING_REPORT_STEP)

SLOW_FIRST_TRIALS_NOTE = "trials' processes load libraries and data first: about 10 s, on a busy machine up to a minute"
"""What happens until the first trial runs."""

STOPPING_MESSAGE = "stopping; trials that run go on later, from checkpoints if they keep any. Ctrl-C once more: at once"
"""Message that is printed as soon as a signal has come."""
