"""Data sets, networks and losses of other distributions that are installed: found, run, and refused where not right."""

import json
import os
import subprocess
import sys
from pathlib import Path

import other_distribution
import pytest
from helpers import ROOT

STUDY = """\
name: own
data: {name: stripes, size: 6}
model: {name: average}
method: {name: spread, temperature: 0.5, regulariser: fair_kl, lambda: 0.1}
train: {epochs: 1, batch_size: 16}
search:
  space: {method.alpha: {low: 0.1, high: 1.0}}
  trials: 2
"""

REFUSALS = """
import sys
from study.errors import UserError
from study.spec import load_study
for given in sys.argv[1:]:
    try:
        load_study("own.yaml", given.split(";"))
    except UserError as error:
        print(error)
    else:
        print("accepted")
"""


class Installed:
    """Python in a folder with a study file, where the other distribution is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        other_distribution.install(folder / "site")
        (folder / "own.yaml").write_text(STUDY)

    def __call__(self, *arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{self.folder / 'site'}"}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.mark.slow
def test_a_trial_with_nothing_but_what_is_of_others(installed: Installed) -> None:
    (epoch,) = json.loads(installed("-m", "study", "trial", "own.yaml", "--json"))["epochs"]
    assert 0.0 <= epoch["val/worst_group_accuracy"] <= epoch["val/accuracy"] <= 1.0
    assert epoch["train/loss"] > 0


@pytest.mark.slow
def test_what_cannot_be_used_is_told_where_it_is_asked_for_and_disturbs_nothing_else(installed: Installed) -> None:
    asked = [
        "data.size=5",
        "data.size=3",
        "data.name=torn",
        "data.name=biased_digits",
        "method.name=unlike",
        "method.name=half",
        "method.name=sprea",
        "search.space={method.name: {choices: [spread, half]}}",
        "search.space={method.name: {choices: [spread, sup_con]}};search.baseline={method.name: half}",
        "data.severity=3",
    ]
    told = installed("-c", REFUSALS, *asked).splitlines()
    entry = "the entry point others.{} of stripes-and-more 0.3"
    assert told[0] == "accepted"
    assert told[1].endswith("data.size: 3 given, allowed is greater than or equal to 4")
    assert told[2] == (
        f"--set data.name=torn: data.name: 'torn': {entry.format('torn')} cannot be loaded: RuntimeError: torn in two"
    )
    assert "'biased_digits' is declared by stripes-and-more 0.3 and this package (entry point study.data)" in told[3]
    assert f"'unlike': {entry.format('spread')} has NAMES spread; 'unlike' must be one of them" in told[4]
    assert f"'half': {entry.format('half')} has no knobs, needs, build" in told[5]
    assert "'sprea' given. Did you mean 'spread'?" in told[6]
    assert told[7].startswith("--set search.space={method.name: {choices: [spread, half]}}: search.space.method.name: ")
    assert f": search.baseline.method.name: 'half': {entry.format('half')} has no knobs" in told[8]
    assert "data.severity: unknown key" in told[9]
    assert "data.name with this key: " in told[9], "the data sets that cannot be loaded are passed over"


@pytest.mark.slow
def test_data_list_shows_where_they_are_from(installed: Installed) -> None:
    rows = {row["name"]: row for row in json.loads(installed("-m", "study", "data", "list", "--json"))}
    assert rows["stripes"]["origin"] == "stripes-and-more 0.3"
    assert rows["stripes"]["facts"]["classes"] == 2
    assert rows["adult"]["origin"] is None
    assert rows["torn"]["problem"].endswith("torn in two")
    assert "a name can have one meaning" in rows["biased_digits"]["problem"]


@pytest.mark.slow
def test_spaces_shows_where_they_are_from(installed: Installed) -> None:
    document = json.loads(installed("-m", "study", "spaces", "--json"))
    (spread,) = (row for row in document["method"] if row["name"] == "spread")
    told = {"about": "Spread: all rows away from each other", "origin": "stripes-and-more 0.3", "problem": None}
    assert spread == {"name": "spread", **told}
    assert "average" in [row["name"] for row in document["model"]]


@pytest.mark.slow
def test_the_schema_has_them_and_leaves_out_what_cannot_be_used(installed: Installed) -> None:
    definitions = json.loads(installed("-m", "study", "schema"))["$defs"]
    methods = json.dumps(definitions["method_name"])
    assert '"spread"' in methods
    assert '"half"' not in methods
    assert definitions["data_size"]["anyOf"]


def test_what_a_study_ran_with_names_the_distribution(installed: Installed) -> None:
    code = (
        "from study.home.provenance import collect_provenance; "
        "print(collect_provenance()['libraries']['stripes-and-more'])"
    )
    assert installed("-c", code) == "0.3\n"


@pytest.mark.slow
def test_a_loss_of_another_distribution_is_no_method_of_this_package(installed: Installed) -> None:
    """Also where its module is imported before this package's own methods are."""
    code = "import others.spread; from study.methods import CATALOGUE; print(CATALOGUE.why_unusable('spread'))"
    assert installed("-c", code) == "None\n"
