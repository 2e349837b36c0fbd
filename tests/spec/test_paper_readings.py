"""Readings of a protocol: declared in a study file, one of them taken, each a block of overrides."""

from pathlib import Path

import pytest
from helpers import ROOT

from study import metrics, published
from study.errors import UserError
from study.reproduce.reproduction import list_cell_places
from study.spec import load_study
from study.spec.load import declared_readings
from study.spec.paper_readings import has_own_trials

FILE = """
name: mine
data: {name: biased_digits}
model: {name: small_conv_net}
method: {name: eps_sup_info_nce, alpha: 0.1, regulariser: fair_kl, lambda: 0.5, alpha_squared: false}
readings:
  once: {about: alpha acts once, source: Eq. 11, set: {method.alpha_squared: false}, taken: it is printed so}
  squared: {about: alpha acts twice, source: the code, set: {method.alpha_squared: true}}
profiles:
  short: {train.epochs: 3, method.alpha_squared: false}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_reading_overrides_the_file_and_its_profile_and_set_overrides_both(file: Path) -> None:
    def is_squared(*assignments: str, reading: str | None = None) -> bool:
        spec = load_study(str(file), assignments, "short", reading=reading)
        assert spec.epochs == 3
        return bool(spec.base["method"]["alpha_squared"])

    assert not is_squared()
    assert not is_squared(reading="once")
    assert is_squared(reading="squared")
    assert not is_squared("method.alpha_squared=false", reading="squared")


def test_a_study_is_the_same_whether_its_reading_is_named_or_not(file: Path) -> None:
    assert load_study(str(file)).hash == load_study(str(file), reading="once").hash
    assert load_study(str(file)).hash != load_study(str(file), reading="squared").hash


def test_a_reading_that_is_not_there_is_refused_with_those_that_are(file: Path) -> None:
    with pytest.raises(UserError, match=r"'twice': no reading of .*once, squared"):
        load_study(str(file), reading="twice")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (", taken: it is printed so", "", "given for none, allowed is exactly one"),
        ("{method.alpha_squared: true}}", "{method.alpha_squared: true}, taken: too}", "given for once, squared"),
        (
            "lambda: 0.5, alpha_squared: false",
            "lambda: 0.5, alpha_squared: true",
            "but the file, which takes it, has True",
        ),
        ("lambda: 0.5, alpha_squared: false", "lambda: 0.5", "has nothing"),
        ("source: the code, ", "", "readings.squared.source"),
        ("about: alpha acts twice", "says: alpha acts twice", "says"),
        (", set: {method.alpha_squared: true}", "", "readings.squared: .*none given, so it differs from no other"),
        ("taken: it", "epoch: best, taken: it", "those of the one taken are the table's"),
        ("source: the code", "source: the code, epoch: middle", "readings.squared.epoch: .*last"),
    ],
)
def test_what_is_wrong_with_a_declaration_is_said(file: Path, before: str, after: str, message: str) -> None:
    assert before in FILE
    file.write_text(FILE.replace(before, after), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        load_study(str(file))


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "search_spaces").glob("*.yaml")))
def test_each_reading_of_a_shipped_file_is_a_study_that_differs_from_the_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    declared = declared_readings(name)
    trained = [reading for reading, of in declared.items() if of.taken or has_own_trials(of)]
    assert len({load_study(name, reading=reading).hash for reading in trained}) == len(trained)
    read = [each for each in declared.values() if not (each.taken or has_own_trials(each))]
    assert len({(*each.metrics.items(), each.epoch) for each in read}) == len(read)
    table = published.load_published_table(name) if declared else None
    for of in declared.values():
        assert table is not None
        assert of.metrics.keys() <= {table.metric_of(*place) for place in list_cell_places(table)}
        parts = {metric.split("/")[1] for metric in of.metrics.values()}
        assert {part.removeprefix("lbfgs_") for part in parts} <= metrics.METRICS.keys()
