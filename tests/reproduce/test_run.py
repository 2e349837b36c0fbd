"""What `study reproduce` runs, and what it refuses to."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from published_study import Course

from study import published
from study.errors import UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.reproduce import (
    ReproductionRequest,
    current_reproduction,
    reproduction_to_dict,
    reproduction_to_markdown,
    run_reproduction,
)
from study.spec import StudySpec

TABLE = "fairkl-table12"
Begin = Callable[..., Course]


def unseen(spec: StudySpec, record: StudyRecord) -> AbstractContextManager[Callable[[str], None]]:
    return nullcontext(lambda told: None)


def test_an_unknown_table_is_refused_with_those_that_there_are(home: Home) -> None:
    with pytest.raises(UserError, match=r"is not a published table\. Did you mean"):
        run_reproduction(home, "fairkl-table13", ReproductionRequest(), unseen)


@pytest.mark.parametrize("seeds", ["a", "", "0,", "-1", "0,0", "4294967296"])
def test_seeds_are_different_whole_numbers(home: Home, seeds: str) -> None:
    with pytest.raises(UserError, match=r"--seeds .*: different whole numbers from 0 on|equal to 4294967295"):
        run_reproduction(home, TABLE, ReproductionRequest(profile="cpu", seeds=seeds), unseen)
    assert home.list_studies() == []


@pytest.mark.parametrize(
    ("seeds", "expected"), [("0,1,2", [0, 1, 2]), ("1,0", [0, 1]), ("7", [7]), ("9,0,4", [0, 4, 9]), ("3,5", [3, 5])]
)
def test_a_configuration_runs_on_the_seeds_that_were_asked_for(
    home: Home, begin: Begin, seeds: str, expected: list[int]
) -> None:
    """The study that is there was begun with these seeds, so that the command takes it as complete."""
    replicates = f"search.replicates={expected}"
    if expected == list(range(expected[0], expected[0] + len(expected))):
        replicates = f"search.replicates={len(expected)}"
    folder = begin(TABLE, f"train.seed={expected[0]}", replicates, profile="cpu").close("complete")
    assert list(folder.load_spec().seeds) == expected
    assert run_reproduction(home, TABLE, ReproductionRequest(profile="cpu", seeds=seeds), unseen) is None
    with pytest.raises(UserError, match="exists already, with other settings"):
        run_reproduction(home, TABLE, ReproductionRequest(profile="cpu", seeds="11,13"), unseen)


@pytest.mark.parametrize("table", published.published_table_names())
def test_a_table_of_which_nothing_has_begun_is_the_papers(
    home: Home, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its data are not there."""
    monkeypatch.setenv("STUDY_DATA", str(home.path))
    monkeypatch.setenv("HOME", str(home.path))
    reproduction = current_reproduction(home, table, ReproductionRequest())
    assert all(cell["last_epoch"] is None and cell["missing"] for cell in reproduction_to_dict(reproduction)["cells"])
    of = published.load_published_table(table)
    assert (of.no_study or "no trial has run yet") in " ".join(reproduction.last_epoch_grid.notes)
    assert home.list_studies() == []


def test_a_table_of_which_nothing_can_be_run_is_refused_with_why_and_its_numbers_are_shown(home: Home) -> None:
    with pytest.raises(UserError, match=r"dcl-table2: .* neither text data nor .*study reproduce dcl-table2 --report"):
        run_reproduction(home, "dcl-table2", ReproductionRequest(), unseen)
    assert home.list_studies() == []
    shown = current_reproduction(home, "dcl-table2", ReproductionRequest())
    assert "| Biased (QT) | paper (published only) | **76.8** | 81.3 |" in reproduction_to_markdown(shown)
    assert {cell["missing"] for cell in reproduction_to_dict(shown)["cells"]} == {"published only"}


def test_a_study_that_is_named_must_be_there(home: Home) -> None:
    with pytest.raises(UserError, match="mine"):
        current_reproduction(home, TABLE, ReproductionRequest(name="mine"))


def test_a_file_that_a_user_must_bring_is_named_with_where_to_get_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ImageNet-100 both trees and the list of classes are there, the features are not."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("train", "val"):
        (tmp_path / "imagenet" / folder).mkdir(parents=True)
    (tmp_path / "imagenet" / "imagenet100.txt").write_text("\n".join(f"n{number:08d}" for number in range(100)))
    given = ReproductionRequest(
        assignments=("search.space.data.name={choices: [imagenet100, cub]}", "resources={cpu: 1, gpu: 0}")
    )
    with pytest.raises(UserError, match=r"imagenet/clip\.npz: not found.*github\.com/openai/CLIP"):
        run_reproduction(home, "cclk-table2", given, unseen)
    assert home.list_studies() == []


def test_a_complete_study_runs_nothing(home: Home, begin: Begin) -> None:
    begin(TABLE, profile="cpu").close("complete")
    assert run_reproduction(home, TABLE, ReproductionRequest(), unseen) is None
    assert run_reproduction(home, TABLE, ReproductionRequest(profile="cpu", seeds="0,1,2"), unseen) is None


@pytest.mark.parametrize(
    "given", [ReproductionRequest(seeds="0,1"), ReproductionRequest(profile="cpu", assignments=("train.epochs=3",))]
)
def test_a_study_of_other_settings_is_not_gone_on_with(home: Home, begin: Begin, given: ReproductionRequest) -> None:
    begin(TABLE, profile="cpu").close("complete")
    with pytest.raises(UserError, match="exists already, with other settings"):
        run_reproduction(home, TABLE, given, unseen)


def test_a_table_is_compared_at_the_last_epoch(home: Home) -> None:
    with pytest.raises(UserError, match=r"search\.epoch: 'best' given, allowed is last"):
        run_reproduction(home, TABLE, ReproductionRequest(profile="cpu", assignments=("search.epoch=best",)), unseen)
    assert home.list_studies() == []


def test_a_table_needs_the_test_metrics_of_each_trial(home: Home) -> None:
    """Without them every trial runs and no cell has a value."""
    with pytest.raises(UserError, match=r"train\.report_test: false given, allowed is true"):
        run_reproduction(
            home, TABLE, ReproductionRequest(profile="cpu", assignments=("train.report_test=false",)), unseen
        )
    assert home.list_studies() == []
