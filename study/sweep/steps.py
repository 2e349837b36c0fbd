"""What a driver does while no trial runs, in the words that a user sees."""

STARTING = "starting Ray"
PREPARING = "preparing data"
REPORTING = "writing the report"
STEPS = (STARTING, PREPARING, REPORTING)
