"""What a driver, its ledger and MLflow would have to carry in a simulated study."""

from dataclasses import dataclass

from study.simulation.variants import Variant

REPORT, TRIAL = 0.001, 0.0064
"""Seconds of the driver's processor for a report and for a trial, as measured where they are many
(`tests/benchmarks/overhead.py scale`)."""
REPORT_BYTES, TRIAL_BYTES = 1_380, 424
"""Of the ledger: a report of the quickstart's, with its metrics; the other events of a trial."""
REPORT_ROWS = 28
"""Of MLflow's table of metrics: the numbers of a quickstart's report."""


@dataclass(frozen=True)
class Load:
    """On average over courses.

    Attributes:
        reports: each second, in the busiest minute.
        driver: share of one processor that its driver would need then; above 1 it cannot follow.
        ledger: bytes.
        rows: of MLflow's tables.
    """

    reports: float
    driver: float
    ledger: float
    rows: float


def load(variant: Variant) -> Load:
    """Of the courses of a variant."""
    epochs, trials = variant.search["epochs"].mean, variant.trials.mean
    reports = max(variant.busiest.mean / 60, 1e-9)
    return Load(
        reports,
        reports * (REPORT + TRIAL * trials / max(epochs, 1.0)),
        epochs * REPORT_BYTES + trials * TRIAL_BYTES,
        epochs * REPORT_ROWS + trials,
    )


def words(carried: Load) -> str:
    """For people."""
    verdict = "" if carried.driver < 0.8 else ", more than it has" if carried.driver > 1 else ", nearly all of it"
    return (
        f"{carried.reports:,.3g} reports a second in the busiest minute, {100 * carried.driver:,.3g}% of one processor "
        f"for the driver{verdict}; {carried.ledger / 1e6:,.3g} MB of ledger, {carried.rows:,.0f} rows in MLflow"
    )
