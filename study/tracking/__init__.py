"""The only writer to MLflow: brings a study's ledger there, as a parent run per study and a child run per trial."""

from study.tracking.remove import remove
from study.tracking.tracker import Tracker
from study.tracking.tracking_state import refresh

__all__ = ["Tracker", "refresh", "remove"]
