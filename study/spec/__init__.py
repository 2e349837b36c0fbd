"""Read a study file and check it before anything starts."""

from study.spec.load import load_resolved, load_resolved_and_check, load_study
from study.spec.study_spec import StudySpec

__all__ = ["StudySpec", "load_resolved", "load_resolved_and_check", "load_study"]
