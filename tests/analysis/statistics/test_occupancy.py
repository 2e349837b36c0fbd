"""When trials ran, and where."""

import pytest

from study.analysis.statistics.occupancy import busy, occupancy, places
from study.home.record import StudyRecord


def ran(*sessions):
    """A study of sessions (begin, runs), a run (node, start, end, state); end None: it still runs."""
    record, number = StudyRecord(), 0
    record.apply({"event": "created", "id": "x", "time": 0.0})
    for begin, runs in sessions:
        events = []
        for node, start, end, state in runs:
            told = {"trial": number, "time": start}
            events.append((start, 0, {"event": "trial", "stage": "search", "params": {}, "seed": 0, **told}))
            events.append((start, 1, {"event": "started", "node": node, **told}))
            if end is not None:
                events.append((end, 2, {"event": "ended", "trial": number, "time": end, "state": state}))
            number += 1
        record.apply({"event": "opened", "owner": "ada", "time": begin})
        for *_, event in sorted(events, key=lambda event: event[:2]):
            record.apply(event)
    return record


def test_as_many_lanes_as_trials_ran_at_once_on_each_node():
    found = occupancy(
        ran(
            (
                0,
                [
                    ("a:1", 1, 4, "complete"),
                    ("a:2", 2, 3, "pruned"),
                    ("a:9", 3, 5, "complete"),
                    ("b:1", 3, 5, "failed"),
                ],
            )
        )
    )
    assert list(zip(found["node"], found["lane"], strict=True)) == [("a", 0), ("a", 1), ("a", 1), ("b", 0)]
    assert found["start"].tolist() == [0, 1, 2, 2]
    assert found["end"].tolist() == [3, 2, 4, 4]
    assert places(found) == [("a", 0), ("a", 1), ("b", 0)]
    assert busy(found) == pytest.approx((3 + 1 + 2 + 2) / (3 * 4))


def test_pauses_are_left_out():
    found = occupancy(ran((0, [("a", 1, 4, "complete")]), (104, [("a", 105, 107, "complete")])))
    assert found["start"].tolist() == [0, 4]
    assert found["end"].tolist() == [3, 6]
    assert busy(found) == pytest.approx(5 / 6)


def test_what_runs_ends_with_the_last_event():
    found = occupancy(ran((0, [("a", 1, None, ""), ("a", 2, 5, "complete")])))
    assert found["end"].tolist() == [4, 4]
    assert found["state"].tolist() == ["running", "complete"]


def test_nothing_has_run():
    assert occupancy(StudyRecord()).empty
    assert busy(occupancy(StudyRecord())) == 1.0


def test_trials_that_began_again_after_a_kill_have_their_last_run_from_zero():
    record = StudyRecord()
    told = [
        {"event": "created", "id": "x", "time": 0.0},
        {"event": "opened", "owner": "ada", "time": 0.0},
        {"event": "trial", "trial": 0, "stage": "search", "params": {}, "seed": 0, "time": 1.0},
        {"event": "started", "trial": 0, "node": "a:1", "time": 1.0},
        {"event": "opened", "owner": "ada", "time": 100.0},
        {"event": "started", "trial": 0, "node": "a:7", "time": 103.0},
        {"event": "ended", "trial": 0, "time": 105.0, "state": "complete"},
    ]
    for event in told:
        record.apply(event)
    found = occupancy(record)
    assert (found["start"].tolist(), found["end"].tolist()) == ([0.0], [2.0])


def test_a_trial_that_is_extended_left_its_lane():
    """Its place was another's meanwhile; what it took is the time of its runs."""
    record = ran((0, [("a", 1, None, "")]))
    record.apply({"event": "ended", "trial": 0, "state": "complete", "time": 3})
    assert occupancy(record)["end"].tolist() == [2]
    record.apply({"event": "lengthened", "trials": [0], "epochs": 9, "time": 7})
    record.apply({"event": "started", "trial": 0, "node": "a", "time": 8})
    record.apply({"event": "trial", "trial": 1, "stage": "search", "params": {}, "seed": 0, "time": 3})
    record.apply({"event": "started", "trial": 1, "node": "a", "time": 4})
    for trial, end in ((1, 6), (0, 20)):
        record.apply({"event": "ended", "trial": trial, "state": "pruned", "time": end})
    found = occupancy(record)
    assert found.index.tolist() == [0, 1, 0]
    assert found["lane"].tolist() == [0, 0, 0]
    assert (found["start"].tolist(), found["end"].tolist()) == ([0, 3, 7], [2, 5, 19])
    assert record.trials[0].seconds == 2 + 12


def test_a_trial_whose_end_only_the_next_session_wrote_has_a_length_above_zero():
    """Its driver was killed between its last report and its end: nothing of the session before had ended."""
    record = StudyRecord()
    told = [
        {"event": "created", "id": "x", "time": 0.0},
        {"event": "opened", "owner": "ada", "time": 0.0},
        {"event": "trial", "trial": 0, "stage": "search", "params": {}, "seed": 0, "time": 10.0},
        {"event": "started", "trial": 0, "node": "a:1", "time": 10.0},
        {"event": "opened", "owner": "ada", "time": 100.0},
        {"event": "ended", "trial": 0, "time": 100.5, "state": "complete"},
    ]
    for event in told:
        record.apply(event)
    found = occupancy(record)
    assert found["start"].tolist() == [0.0]
    assert found["end"].tolist() == [0.5]
