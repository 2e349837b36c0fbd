"""Final training: a configuration on several seeds, and more seeds later."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import Told, quickstart, reread, write_ledger

from study.analysis.report.conclusions import FinalTrainingValues, SplitTooSmall, conclusion_statements
from study.analysis.statistics.compare_studies import comparison_table
from study.commands.final_training import (
    compare_with_baseline_training,
    create_or_extend_training,
    default_final_seeds,
    export_baseline_spec,
    final_training_spec,
    is_baseline_training,
    parse_seeds,
    study_of_searched_file,
)
from study.commands.report import write_study_report
from study.errors import UserError
from study.home.events import (
    EpochReported,
    SessionClosed,
    SessionOpened,
    TrialDecided,
    TrialEnded,
    TrialStarted,
    TrialTested,
)
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking import Results, study_summary
from study.spec.configuration import EXPORT_FORMAT_VERSION, configuration_digest

SPEC = quickstart()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.mark.parametrize(("text", "seeds"), [("0", [0]), ("2,0,1", [2, 0, 1]), (" 3 , 04 ", [3, 4])])
def test_seeds_are_read(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    "text", ["", "a", "1,", "1,1", "1,01", "-1", "1.5", "1;2", "²", "1 2", "9" * 5000, "4294967296"]
)
def test_what_are_no_seeds(text: str) -> None:
    with pytest.raises(UserError, match=r"--seeds .*: different whole numbers from 0 on"):
        final_training_spec(SPEC, parse_seeds(text))


def test_seeds_may_be_those_of_numpy() -> None:
    assert final_training_spec(SPEC, list(np.arange(3))).final_seeds == (0, 1, 2)


def test_a_final_training_keeps_the_configuration_and_searches_nothing() -> None:
    final = final_training_spec(SPEC, [1, 0])
    assert (final.name, final.final_seeds) == ("quickstart-final", (1, 0))
    assert final.base == SPEC.base
    assert (final.search.space, final.search.baseline, final.search.confirm.top) == ({}, None, 0)
    assert final.metric == SPEC.metric


def test_with_the_validation_split_it_is_another_configuration() -> None:
    exported = replace(SPEC, origin={"study": "mine", "digest": "0" * 64})
    final = final_training_spec(exported, [0], with_val=True)
    assert final.base["train"]["with_val"]
    assert final.origin == {"study": "mine", "changed": ["--data train+val"]}
    assert final_training_spec(exported, [0]).origin == exported.origin
    with pytest.raises(UserError, match=r"train.with_val: nothing could be searched by then"):
        quickstart("train.with_val=true")


def test_with_folds_nobody_asked_for_the_validation_split() -> None:
    """So its card names no change, and the file in its folder is as it was exported."""
    folds = quickstart("data.folds=3", "data.val=biased")
    exported = replace(
        folds, origin={"format": EXPORT_FORMAT_VERSION, "study": "mine", "digest": configuration_digest(folds.base)}
    )
    final = final_training_spec(exported, [0])
    assert final.base["train"]["with_val"]
    assert final.origin == {**exported.origin, "digest": configuration_digest(final.base)}
    changed = replace(
        exported, origin={"format": EXPORT_FORMAT_VERSION, "study": "mine", "changed": ["train.epochs=3"]}
    )
    assert final_training_spec(changed, [0]).origin == changed.origin


@pytest.mark.parametrize(
    ("origin", "seeds"),
    [(None, [0, 1, 2]), ({"study": "mine"}, [0, 1, 2]), ({"study": "mine", "unused_seed": 6}, [6, 7, 8])],
)
def test_without_seeds_it_takes_three_that_the_study_did_not_use(home: Home, origin: Any, seeds: list[int]) -> None:
    assert default_final_seeds(home, replace(SPEC, origin=origin)) == seeds


def test_seeds_that_the_study_used_since_are_not_taken(home: Home) -> None:
    folder = home.create_study(replace(SPEC, name="mine"))
    write_ledger(folder.ledger_file, Told("baseline", [0.5], seed=0), Told("confirm", [0.5], seed=11, repeats=0))
    identity = StudyRecord.load(folder.ledger_file).id
    assert default_final_seeds(home, replace(SPEC, origin={"study": "mine", "unused_seed": 4})) == [12, 13, 14]
    assert default_final_seeds(home, replace(SPEC, origin={"study": "mine", "study_id": identity})) == [12, 13, 14]
    deleted = {"study": "mine", "study_id": "0" * 32, "unused_seed": 4}  # another study has its name now
    assert default_final_seeds(home, replace(SPEC, origin=deleted)) == [4, 5, 6]


def test_without_seeds_it_goes_on_with_a_training_that_is_there_or_takes_the_seeds_of_what_it_is_compared_with(
    home: Home,
) -> None:
    best = replace(SPEC, origin={"study": "mine", "study_id": "1" * 32, "unused_seed": 4})
    baseline = replace(best, origin={**(best.origin or {}), "baseline": True})
    assert default_final_seeds(home, best) == [4, 5, 6]
    home.create_study(final_training_spec(best, [0, 8]))
    assert default_final_seeds(home, best) == [0, 8], "it goes on, whatever its seeds are"
    assert default_final_seeds(home, baseline) == [4, 5, 6], "the search may have seen seed 0"
    home.create_study(final_training_spec(best, [8, 9], "second"))
    assert default_final_seeds(home, baseline) == [8, 9]
    assert default_final_seeds(home, replace(baseline, base=quickstart("train.epochs=11").base)) == [4, 5, 6]
    for other in ({"study": "other", "unused_seed": 7}, {"study": "mine", "study_id": "2" * 32, "unused_seed": 7}):
        assert default_final_seeds(home, replace(best, origin=other), "third") == [7, 8, 9]


def test_what_is_fitted_at_once_takes_one_seed_and_leaves_the_baseline_three(home: Home) -> None:
    origin = {"study": "mine", "unused_seed": 4}
    one_epoch = quickstart("train.epochs=1", "search.early_stopping=none")
    baseline = replace(one_epoch, origin={**origin, "baseline": True})
    method = {"name": "reference", "model": "logistic_regression"}
    fitted = replace(one_epoch, base={**one_epoch.base, "method": method}, origin=origin)
    assert default_final_seeds(home, fitted) == [4]
    home.create_study(final_training_spec(fitted, [4]))
    assert default_final_seeds(home, baseline) == [4, 5, 6]
    home.create_study(final_training_spec(baseline, [7, 8]))
    assert default_final_seeds(home, fitted, "second") == [7], "the two can be compared on it"


def test_the_baseline_of_a_file_takes_the_seeds_behind_those_of_its_study(home: Home) -> None:
    write_ledger(
        home.create_study(SPEC).ledger_file, Told("baseline", [0.5], seed=0), Told("confirm", [0.5], seed=11, repeats=0)
    )
    for name in ("quickstart", str(home.find_study("quickstart").spec_file)):
        assert default_final_seeds(home, export_baseline_spec(home, name)) == [12, 13, 14]


def test_it_is_named_after_the_study_that_found_it() -> None:
    exported = replace(SPEC, name="quickstart-best", origin={"study": "mine"})
    assert final_training_spec(exported, [0]).name == "mine-final"
    assert final_training_spec(exported, [0], "other").name == "other"


@pytest.mark.parametrize("changes", [(), ("data.folds=3", "data.val=biased")])
def test_more_seeds_are_added_to_those_there_are(home: Home, changes: tuple[str, ...]) -> None:
    spec = quickstart(*changes)
    create_or_extend_training(home, final_training_spec(spec, [0, 1]))
    folder = create_or_extend_training(home, final_training_spec(spec, [1, 5]))
    assert folder.load_spec().final_seeds == (0, 1, 5)
    assert create_or_extend_training(home, final_training_spec(spec, [0])).load_spec().final_seeds == (0, 1, 5)
    assert [one.name for one in home.list_studies()] == ["quickstart-final"]


@pytest.mark.parametrize("change", ["method.alpha=0.5", "data.rho=0.9", "train.epochs=21"])
def test_another_configuration_does_not_go_under_the_same_name(home: Home, change: str) -> None:
    folder = create_or_extend_training(home, final_training_spec(SPEC, [0]))
    with pytest.raises(UserError, match=r"quickstart-final: exists already .* another configuration\. Give a --name"):
        create_or_extend_training(home, final_training_spec(quickstart(change), [0]))
    assert folder.load_spec().final_seeds == (0,)


def test_it_chooses_its_epoch_as_the_search_did_and_takes_the_last_where_nothing_validates() -> None:
    best = quickstart("search.epoch=best", "search.epoch_window=5")
    assert final_training_spec(best, [0]).objective == best.objective
    without = final_training_spec(best, [0], with_val=True)
    assert without.objective.epoch_window is None
    with pytest.raises(UserError, match=r"search\.epoch: 'best' given, allowed is last with train\.with_val"):
        reread(replace(without, search=best.search))


def test_the_baseline_is_trained_by_the_name_or_file_of_its_study(home: Home) -> None:
    home.create_study(replace(SPEC, name="mine"))
    baseline = export_baseline_spec(home, "mine", ["train.epochs=3"])
    assert {key: baseline.base["method"][key] for key in ("alpha", "lambda", "epsilon")} == {
        "alpha": 1.0,
        "lambda": 0.0,
        "epsilon": 0.0,
    }
    assert (baseline.search.space, baseline.epochs) == ({}, 3)
    assert final_training_spec(baseline, [0]).name == "mine-baseline-final"
    assert reread(baseline).base == baseline.base
    assert (
        export_baseline_spec(home, "quickstart").base
        == replace(SPEC, base=export_baseline_spec(home, "mine").base).base
    )
    home.create_study(final_training_spec(SPEC, [0]))
    with pytest.raises(UserError, match=r"quickstart-final: has no search\.baseline"):
        export_baseline_spec(home, "quickstart-final")


@pytest.mark.slow
def test_best_and_baseline_stand_side_by_side_on_the_seeds_of_both(home: Home) -> None:
    best, plain = trained(home, {"study": "mine"}, 0.75), trained(home, {"study": "mine", "baseline": True}, 0.5)
    for folder in (best, plain):
        compared = compare_with_baseline_training(folder, Results.load(folder))
        assert compared is not None
        table = comparison_table(compared)
        assert list(table.columns) == ["", "mine-baseline-final", "mine-final"]
        rows = dict(zip(table[""], table["mine-final"], strict=True))
        assert rows["final test/accuracy"] == "75.8 ± 1.1% (2)"
        assert rows["final test/accuracy, minus that of mine-baseline-final"].startswith("+25.2 points")
    on_gpu = trained(home, {"study": "mine", "changed": ["resources.gpu=1"]}, 0.75, "on-gpu")
    longer = trained(home, {"study": "mine", "changed": ["method.alpha=2"]}, 0.75, "other-alpha")
    for folder, is_compared in ((on_gpu, True), (longer, False)):
        assert (compare_with_baseline_training(folder, Results.load(folder)) is not None) == is_compared
    page = write_study_report(home, "mine-final", home.path / "out")[0].with_suffix(".md").read_text()
    first, _, later = page.partition("## Best and baseline")
    assert "mine-final against mine-baseline-final: test/accuracy +25.2 points (95% interval +" in first
    assert "study predict mine-final INPUTS" in first
    assert "method." not in later.partition("\n## ")[0]
    assert "| method." in later.partition("## Settings of best and baseline")[2]
    other = trained(home, {"study": "other"}, 0.75)
    assert compare_with_baseline_training(other, Results.load(other)) is None


def test_a_baseline_that_is_the_best_is_trained_once(home: Home) -> None:
    """Whichever of the two is trained first; seeds of it may be added, and it is beside nothing."""
    write_ledger(home.create_study(replace(SPEC, name="mine")).ledger_file, Told("baseline", [0.5]))
    baseline = export_baseline_spec(home, "mine")
    best = replace(baseline, name="mine-best", origin={**(baseline.origin or {}), "baseline": False, "trial": 0})
    best.base["train"]["seed"] = 5  # an export has that of its trial
    for first, second in ((best, baseline), (baseline, best)):
        trained = create_or_extend_training(home, final_training_spec(first, [3, 4]))
        final = final_training_spec(second, [3, 4])
        with pytest.raises(UserError, match=rf"{final.name}: would train what {trained.name} has trained"):
            create_or_extend_training(home, final)
        assert create_or_extend_training(home, final_training_spec(first, [9])).load_spec().final_seeds == (3, 4, 9)
        assert is_baseline_training(home, final_training_spec(first, [3]))
        shutil.rmtree(trained.path)
    other = replace(best, base={**best.base, "method": {**best.base["method"], "alpha": 0.5}})
    assert not is_baseline_training(home, final_training_spec(other, [3]))
    create_or_extend_training(home, final_training_spec(baseline, [3]))
    assert create_or_extend_training(home, final_training_spec(other, [3])).name == "mine-final"


@pytest.mark.slow
def test_a_figure_carries_the_error_of_its_split_which_is_told_first_where_it_is_large(home: Home) -> None:
    folder = trained(home, {"study": "mine"}, 0.75)
    spec, record = folder.load_spec(), StudyRecord.load(folder.ledger_file)
    document = study_summary.summarise_study(Results(spec, record))
    assert study_summary.summary_lines(document)[1:4] == [
        "final     test/accuracy              75.8 ± 1.1% (2 seeds), 95%: 57.6 to 87.8%",
        "final     val/accuracy               75.8 ± 1.1% (2 seeds)",
        "±: over seeds; 95%: with the error of the split's own samples, which seeds share",
    ]
    first, *others, last = conclusion_statements(Results(spec, record))
    assert isinstance(first, SplitTooSmall)
    assert not any(isinstance(one, SplitTooSmall) for one in others)
    assert (first.metric, first.interval) == ("test/accuracy", pytest.approx((0.576, 0.878), abs=5e-4))
    assert isinstance(last, FinalTrainingValues)
    assert last.values["test/accuracy"].confidence_interval() == first.interval
    assert (
        "| 8.0 points | 57.6 to 87.8% |"
        in write_study_report(home, folder.name, home.path / "out")[0].with_suffix(".md").read_text()
    )


def trained(home: Home, origin: dict[str, Any], accuracy: float, name: str | None = None) -> StudyFolder:
    """A final training on two seeds with these accuracies; that of a baseline is of another alpha than the others."""
    spec = quickstart("method.alpha=0.25") if origin.get("baseline") else SPEC
    folder = create_or_extend_training(home, final_training_spec(replace(spec, origin=origin), [3, 4], name))
    ledger = Ledger(folder.ledger_file)
    ledger.append(SessionOpened(owner="ada", version="1", data="1", libraries={}))
    for number, seed in enumerate((3, 4)):
        value = accuracy + number * accuracy / 50
        ledger.append(TrialDecided(trial=number, stage="final", params={}, seed=seed))
        ledger.append(TrialStarted(trial=number, node="here"))
        ledger.append(EpochReported(trial=number, epoch=1, metrics={"val/accuracy": value}))
        ledger.append(TrialEnded(trial=number, state="complete"))
        ledger.append(TrialTested(trial=number, metrics={"test/accuracy": value, "test/accuracy_standard_error": 0.08}))
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    return folder


def test_a_file_that_a_study_of_the_home_has_searched_is_known(home: Home) -> None:
    """`study train FILE` trains the file's own configuration, and says what the study chose."""
    assert study_of_searched_file(home, SPEC) is None, "no study has begun with it"
    folder = home.create_study(SPEC)
    assert study_of_searched_file(home, SPEC) is None, "nothing was chosen yet"
    folder.best_file.write_text("name: best\n")
    assert study_of_searched_file(home, SPEC) == "quickstart"
    assert study_of_searched_file(home, replace(SPEC, origin={"format": EXPORT_FORMAT_VERSION})) is None
    assert study_of_searched_file(home, quickstart("search.space={}", "search.baseline=null")) is None
