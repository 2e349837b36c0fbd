"""How slots are shared among studies: the rules, on whole clusters in memory."""

import json
from dataclasses import asdict, replace

import pytest

from study.files import parse_json
from study.sweep.fair_share import FAIRNESS_QUANTUM_S, StudyPeer, allot_slots, relative_shares


def peer(
    name: str, owner: str = "ann", most: int = 100, hungry: bool = True, began: bool = True, **given: float
) -> StudyPeer:
    told = {"cpu": 1.0, "gpu": 0.0, "under_way": 0, "served": 0.0, "since": 0.0, **given}
    return StudyPeer(id=name, owner=owner, cluster="here:1", most=most, hungry=hungry, began=began, **told)  # type: ignore[arg-type]


def given(*peers: StudyPeer, cpus: float = 8, gpus: float = 0) -> list[int]:
    found = allot_slots(peers, {"CPU": cpus, "GPU": gpus})
    return [found[one.id] for one in peers]


def test_what_one_does_not_want_the_other_has() -> None:
    assert given(peer("large"), peer("small", most=2)) == [6, 2]
    assert given(peer("large"), peer("full", under_way=1, hungry=False)) == [7, 1]
    assert given(peer("large"), peer("idle", hungry=False)) == [8, 0]


def test_owners_have_equal_shares_however_many_their_studies() -> None:
    several = [peer(f"a{number}", "ann") for number in range(4)]
    assert given(*several, peer("b", "bob")) == [1, 1, 1, 1, 4]


def test_trials_count_by_the_resource_of_which_they_take_the_largest_part() -> None:
    """A quarter of a GPU of two is more than one of sixteen CPUs."""
    assert given(peer("gpu", gpu=0.25), peer("cpu"), cpus=16, gpus=2) == [5, 11]


def test_what_does_not_fit_gets_none_and_takes_none() -> None:
    assert given(peer("wide", cpu=16.0), peer("narrow")) == [0, 8]


def test_with_one_slot_the_one_who_had_least_is_next_then_the_newest() -> None:
    old, new = peer("old", since=1.0), peer("new", since=2.0)
    assert given(old, new, cpus=1) == [0, 1]
    assert given(old, replace(new, served=FAIRNESS_QUANTUM_S / 2), cpus=1) == [0, 1]
    assert given(old, replace(new, served=FAIRNESS_QUANTUM_S), cpus=1) == [1, 0]


def test_with_fewer_slots_than_studies_each_has_its_first_trial_before_another_has_its_next() -> None:
    """The one that waits the longest first, whatever the others have had."""
    studies = [peer("large", "ann", since=0.0, under_way=2, served=1.0)]
    studies += [peer(f"s{number}", f"owner {number}", since=number, served=1000.0, began=False) for number in (1, 2, 3)]
    began = []
    for _ in range(3):
        began.append(given(*studies, cpus=2))
        first = next(number for number, one in enumerate(studies) if not one.began)
        studies[first] = replace(studies[first], began=True)
    assert began == [[0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]


@pytest.mark.parametrize("cpus", [1, 2, 3, 7])
def test_over_time_each_has_its_share_of_few_slots(cpus: int) -> None:
    """Trials that end each half minute: none waits for ever, and after a while each has had its part."""
    studies = [peer(f"s{number}", owner=owner, since=number) for number, owner in enumerate("aab")]
    had = [0.0, 0.0, 0.0]
    for _ in range(300):
        counts = given(*studies, cpus=cpus)
        assert sum(counts) == cpus
        weight = relative_shares(studies)
        for number, count in enumerate(counts):
            had[number] += count
            served = studies[number].served + 30 * count / cpus / weight[studies[number].id]
            studies[number] = replace(studies[number], served=served)
    parts = [seconds / sum(had) for seconds in had]
    assert parts == pytest.approx([0.25, 0.25, 0.5], abs=0.04)


@pytest.mark.parametrize(
    "damage", [{"most": -1}, {"most": "1"}, {"cpu": None}, {"hungry": 1}, {"under_way": -1}, {"owner": 3}]
)
def test_what_is_no_peer_is_none(damage: dict[str, object]) -> None:
    told = asdict(peer("a"))
    assert parse_json(json.dumps(told), StudyPeer) == peer("a")
    assert parse_json(json.dumps({**told, **damage}), StudyPeer) is None


def over_time(*peers: StudyPeer, cpus: float, periods: int) -> dict[str, float]:
    """CPU seconds that each has had after so many periods of 10 s, if slots change hands at once."""
    amount = {one.id: 0.0 for one in peers}
    for _ in range(periods):
        now = [replace(one, served=amount[one.id] / cpus, began=amount[one.id] > 0) for one in peers]
        slots = allot_slots(now, {"CPU": cpus, "GPU": 0})
        used = sum(slots[one.id] * one.cpu for one in peers)
        assert used <= cpus
        for one in peers:
            amount[one.id] += 10 * slots[one.id] * one.cpu
    return amount


@pytest.mark.parametrize(("cpus", "wide"), [(8, 6), (8, 8), (8, 5), (4, 3)])
def test_a_study_of_wide_trials_has_its_share_beside_one_of_narrow_ones(cpus: int, wide: int) -> None:
    amount = over_time(peer("wide", cpu=float(wide)), peer("narrow"), cpus=cpus, periods=600)
    assert amount["wide"] == pytest.approx(amount["narrow"], rel=0.15)
