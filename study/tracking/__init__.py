"""The study's ledger, brought into MLflow: a parent run per study, a child run per trial. The only writer to MLflow."""

from study.tracking.remove import remove
from study.tracking.tracker import Tracker
from study.tracking.tracking_state import refresh

__all__ = ["Tracker", "refresh", "remove"]
