"""Courses that a test takes a few steps of."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from course import Course

from study.spec import StudySpec
from study.sweep.agenda import TrialJob


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Course]]:
    """Begins a study, and its first trials."""
    begun: list[Course] = []

    def make(spec: StudySpec, trials: int = 0) -> Course:
        course = Course(tmp_path / "begun.jsonl", spec)
        begun.append(course)
        for _ in range(trials):
            job = course.agenda.next_job()
            assert isinstance(job, TrialJob)
            course.agenda.record_trial_start(job.trial.number, "here")
        return course

    yield make
    for course in begun:
        course.ledger.close()
