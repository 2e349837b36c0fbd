"""The only writer to MLflow: brings a study's ledger there, as a parent run per study and a child run per trial."""

from study.tracking.remove_runs import remove_study_runs
from study.tracking.tracker import MlflowTracker
from study.tracking.tracking_state import replace_study_artifacts

__all__ = ["MlflowTracker", "remove_study_runs", "replace_study_artifacts"]
