"""The study's ledger, brought into MLflow: a parent run per study, a child run per trial. The only writer to MLflow."""

from study.tracking.remove import remove
from study.tracking.tracked import refresh
from study.tracking.tracker import Tracker

__all__ = ["Tracker", "refresh", "remove"]
