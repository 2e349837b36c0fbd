"""The file that says how a cluster is shared, and what a job says of its study."""

from pathlib import Path

import pytest

from study.errors import UserError
from study.home.folder import Home
from study.home.sharing import Limits, Sharing, sharing


def test_without_a_file_nothing_is_limited(tmp_path: Path) -> None:
    assert sharing(tmp_path) == Sharing()
    assert sharing(tmp_path).of("ann") == Limits(1.0, None)


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "sharing.yaml").write_text("slots: 16\nowners:\n  ann: {share: 2, slots: 32}\n  bob: {}\n")
    found = sharing(tmp_path)
    assert [found.of(name) for name in ("ann", "bob", "cy")] == [Limits(2.0, 32), Limits(1.0, 16), Limits(1.0, 16)]


def test_owners_may_be_numbers_or_none_yet(tmp_path: Path) -> None:
    (tmp_path / "sharing.yaml").write_text("owners:\n  1234: {share: 2}\n")
    assert sharing(tmp_path).of("1234").share == 2
    (tmp_path / "sharing.yaml").write_text("slots: 3\nowners:\n")
    assert sharing(tmp_path).of("ann").slots == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("slots: 0", "slots: 0 given, allowed is greater than or equal to 1"),
        ("slots: true", "slots: True given"),
        ("drivers: 3", "drivers: 3 given, unknown key"),
        ("slot: 3", "slot: 3 given, unknown key"),
        ("[]", "it: [] given"),
        ("owners: 3", "owners: 3 given"),
        ("owners: {ann: {share: 0}}", "owners.ann.share: 0 given, allowed is greater than or equal to 0.01"),
        ("owners: {ann: {slots: 1.5}}", "owners.ann.slots: 1.5 given"),
        ("slots: [", "cannot be read: while parsing"),
        ("slots: !!python/object:os.system x", "cannot be read: could not determine a constructor"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "sharing.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        sharing(tmp_path)
    assert told in str(error.value)
    assert str(tmp_path / "sharing.yaml") in str(error.value)


def test_no_study_has_the_name_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"sharing\.yaml: is the home's own"):
        Home(tmp_path).check_new("sharing.yaml")


@pytest.mark.parametrize("limits", [Limits(), Limits(0.5, 7)])
def test_a_job_tells_its_limits(limits: Limits) -> None:
    assert Limits.of(limits.tags()) == limits


@pytest.mark.parametrize("share", ["0", "-1", "nan", "inf", "much", "1e9"])
def test_limits_of_somebody_elses_making_are_harmless(share: str) -> None:
    assert Limits.of({"share": share, "slots": "3"}) == Limits()
