"""The shipped study files: each can be planned, and that of a paper's table has every cell of it."""

from collections import Counter
from pathlib import Path

import pytest
import yaml
from helpers import ROOT

from study import published
from study.commands import plan
from study.published import PublishedTable
from study.reproduce.reproduction import configuration_matches_cell, list_cell_places, planned_configurations
from study.spec import StudySpec, load_study

FOLDER = ROOT / "search_spaces"
ALL = sorted(path.stem for path in FOLDER.glob("*.yaml"))
RUN = [name for name in published.published_table_names() if not published.load_published_table(name).no_study]
OWN = {"fscl-digits": 5, "fairkl-epsilon-digits": 5}
"""Seeds of sweeps of our own, cheap enough for more than three."""
OVER_SPLITS = {"wcl-table3": 5}
"""Tables whose cells are means over splits of the data, a configuration each."""


def profiles(name: str) -> list[str]:
    return list(
        yaml.load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader).get("profiles") or {}
    )


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data are there: a study is planned without."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(("name", "profile"), [(name, profile) for name in ALL for profile in (None, *profiles(name))])
def test_each_shipped_file_can_be_planned_with_each_of_its_profiles(name: str, profile: str | None) -> None:
    document = plan.plan_study(load_study(name, profile=profile))
    assert document.budget.epochs["most"] > 0
    assert f"study {name} (" in plan.plan_text(document)


def counts(table: PublishedTable, spec: StudySpec) -> Counter[tuple[str, str]]:
    """How many configurations of a study each cell of its table has."""
    configurations = planned_configurations(spec)
    found: Counter[tuple[str, str]] = Counter()
    for place in list_cell_places(table):
        where = table.trial_keys_of(*place)
        if where is not None:
            found[place] = sum(configuration_matches_cell(where, *one) for one in configurations)
    return found


@pytest.mark.parametrize("name", RUN)
def test_the_whole_study_has_every_cell_that_the_project_can_have(name: str) -> None:
    """Each is one configuration: its spread is over seeds."""
    table, spec = published.load_published_table(name), load_study(name)
    found = counts(table, spec)
    assert spec.name == name
    assert found
    assert set(found.values()) == {OVER_SPLITS.get(name, 1)}
    assert spec.search.early_stopping.name == "none"
    assert spec.base["train"]["report_test"]
    assert spec.search.replicates == (1 if name in OVER_SPLITS else table.trials or OWN.get(name, 3))


@pytest.mark.parametrize(("name", "profile"), [(name, one) for name in RUN for one in profiles(name)])
def test_a_profile_has_some_of_the_cells_and_nothing_else(name: str, profile: str) -> None:
    table, spec = published.load_published_table(name), load_study(name, profile=profile)
    found = counts(table, spec)
    assert max(found.values()) >= 1
    whole = load_study(name)
    assert len(planned_configurations(spec)) <= len(planned_configurations(whole))
    assert spec.epochs <= whole.epochs


def test_a_table_has_a_study_file_or_says_why_not() -> None:
    assert [name for name in published.published_table_names() if name not in ALL] == ["dcl-table2"]
    assert set(RUN) == set(published.published_table_names()) & set(ALL)


@pytest.mark.parametrize(
    ("where", "params", "document", "expected"),
    [
        ({"method.alpha": 1}, {"method.alpha": 1.0}, {"method": {"alpha": 1.0}}, True),
        ({"method.alpha": 0.1}, {"method.alpha": 1.0}, {"method": {"alpha": 1.0}}, False),
        ({"method.name": "CE"}, {"method.name": "CE"}, {"method": {"name": "cross_entropy"}}, True),
        ({"method.name": "cross_entropy"}, {"method.name": "CE"}, {"method": {"name": "cross_entropy"}}, True),
        ({"method.name": "CE"}, {}, {"method": {"name": "cross_entropy"}}, False),
        ({"method.epsilon": 0.5}, {}, {"method": {"name": "cross_entropy"}}, False),
        ({"data.unlabelled": True}, {}, {"data": {"unlabelled": 1}}, False),
        ({"data.rho": 0.99, "method.alpha": 1.0}, {}, {"data": {"rho": 0.99}, "method": {"alpha": 0.5}}, False),
        ({}, {}, {}, True),
    ],
)
def test_a_configuration_belongs_to_a_cell_by_its_values_and_labels(
    where: dict[str, object], params: dict[str, object], document: dict[str, dict[str, object]], expected: bool
) -> None:
    assert configuration_matches_cell(where, params, document) == expected
