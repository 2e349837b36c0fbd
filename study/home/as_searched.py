"""A study as its search ended it."""

from dataclasses import replace

from study.home.record import StudyRecord


def as_searched(record: StudyRecord) -> StudyRecord:
    """A record without what trials did once they were extended, so that what tells of the search compares trials of as
    many epochs. It shares the trials that were not, and is not to be changed; the record itself where none was."""
    if not record.lengthened:
        return record
    trials = {number: trial.searched for number, trial in record.trials.items()}
    searched = replace(record, trials=trials, lengthened=[])
    searched.computed = None if record.computed is None else {}
    return searched
