"""The best configurations as files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import Told, quickstart, record, write_ledger

from study import data
from study.analysis.report.page_formats import page_to_markdown
from study.analysis.report.report_lead import ResultParameters, report_lead_statements
from study.analysis.report.report_page import build_report_page
from study.commands.export_configurations import export_best
from study.commands.final_training import default_final_seeds, final_training_spec
from study.commands.plan import plan_study, plan_text
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.candidate_selection import CandidateSelection
from study.spec import load_study
from study.trained.model_card import described_model, model_card

SPEC = quickstart("search.confirm={top: 1, seeds: 2}", "train.seed=5", "train.lr_milestones=[0.5]")
PARAMS = [
    {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0},
    {"method.alpha": 0.012345678901234567, "method.lambda": 1.5, "method.epsilon": 0.25},
    {"method.alpha": 0.5, "method.lambda": 1 / 3, "method.epsilon": 0.1},
]
TRIALS = [
    Told("baseline", [0.3], params=PARAMS[0], seed=5),
    Told("search", [0.6], params=PARAMS[1], seed=5),
    Told("search", [0.9], params=PARAMS[2], seed=5),
]
CONFIRMS = [
    Told("confirm", [0.3], params=PARAMS[0], seed=6, repeats=0),
    Told("confirm", [0.3], params=PARAMS[0], seed=7, repeats=0),
    Told("confirm", [0.8], params=PARAMS[2], seed=6, repeats=2, tested={"test/accuracy": 0.7}),
    Told("confirm", [0.6], params=PARAMS[2], seed=7, repeats=2, tested={"test/accuracy": 0.5}),
]


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    return Home(tmp_path / "home").create_study(SPEC)


def told(folder: StudyFolder, *trials: Told) -> dict[str, Any]:
    write_ledger(folder.ledger_file, *trials)
    return {"folder": folder, "results": Results(SPEC, StudyRecord.load(folder.ledger_file))}


def test_the_file_is_a_study_file_whose_configuration_is_the_trials(folder: StudyFolder, tmp_path: Path) -> None:
    out = tmp_path / "best.yaml"
    assert [one.path for one in export_best(**told(folder, *TRIALS), out=out)] == [out]
    best = load_study(str(out))
    assert best.trial_config({}) == SPEC.trial_config(PARAMS[2], seed=5)
    assert best.name == "quickstart-best"
    assert best.search.trials == 1
    assert best.search.space == {}
    assert best.metric == SPEC.metric
    assert best.resources == SPEC.resources


def test_the_file_is_read_in_one_look(folder: StudyFolder, tmp_path: Path) -> None:
    """Its sections are folded; standard errors are those of the study's metric alone."""
    long = {f"val/group_{number}_0_accuracy": 0.123456789 * number for number in range(8)}
    errors = {"val/accuracy_standard_error": 0.01, "val/log_loss_standard_error": 0.02}
    given = told(folder, Told("search", [0.9], params=PARAMS[2], seed=5, further={**long, **errors}))
    export_best(**given, out=tmp_path / "best.yaml")
    lines = (tmp_path / "best.yaml").read_text().splitlines()
    assert len(lines) < 50
    assert max(map(len, lines)) < 150
    best = load_study(str(tmp_path / "best.yaml"))
    assert best.base == SPEC.trial_document({**PARAMS[2], "train.seed": 5})
    assert best.origin is not None
    assert best.origin["metrics"].keys() == {"val/accuracy", "val/accuracy_standard_error", *long}


def test_what_a_study_of_large_seeds_exports_can_be_trained(tmp_path: Path) -> None:
    spec = quickstart("train.seed=3735928559")
    folder = Home(tmp_path / "home").create_study(spec)
    write_ledger(folder.ledger_file, Told("search", [0.6], params=PARAMS[2], seed=3735928559))
    export_best(folder, Results(spec, StudyRecord.load(folder.ledger_file)), tmp_path / "best.yaml")
    seeds = default_final_seeds(Home(tmp_path / "home"), best := load_study(str(tmp_path / "best.yaml")))
    assert final_training_spec(best, seeds).final_seeds == (3735928563, 3735928564, 3735928565)


def test_the_section_is_that_of_the_trials_own_method(tmp_path: Path) -> None:
    label = "search.alternatives={method: {with_ce: {name: bias_con, cross_entropy: plain}}}"
    space = "search.space={method.name: {choices: [sup_con, with_ce]}, method.ce_weight: {low: 0.1, high: 2.0}}"
    spec = quickstart(label, space, "search.baseline=null", "search.confirm.top=0")
    params = {"method.name": "with_ce", "method.ce_weight": 0.7}
    folder = Home(tmp_path / "home").create_study(spec)
    write_ledger(folder.ledger_file, Told("search", [0.6], params=params), Told("search", [0.5], params={}))
    export_best(folder, Results(spec, StudyRecord.load(folder.ledger_file)), tmp_path / "best.yaml")
    best = load_study(str(tmp_path / "best.yaml"))
    assert best.trial_config({}) == spec.trial_config(params)
    assert best.search.alternatives == {}
    method = best.base["method"]
    assert (method["name"], method["cross_entropy"], method["ce_weight"]) == ("bias_con", "plain", 0.7)


def test_it_says_where_it_comes_from(folder: StudyFolder, tmp_path: Path) -> None:
    given = told(folder, *TRIALS, *CONFIRMS)
    export_best(**given, out=tmp_path / "best.yaml")
    origin = load_study(str(tmp_path / "best.yaml")).origin
    first = (tmp_path / "best.yaml").read_text().partition("\nname: ")[0].splitlines()
    found = dict(line.removeprefix("#   ").split(": ") for line in first if line.startswith("#   "))
    best = given["results"].ranked_all[0].trial
    assert {key: json.loads(value) for key, value in found.items()} == best.params
    assert origin is not None
    assert (origin["study"], origin["study_hash"], origin["trial"]) == ("quickstart", SPEC.hash, 2)
    assert origin["study_id"] == given["results"].record.id
    assert (origin["trials"], origin["unused_seed"]) == (3, 8)
    assert origin["chosen_by"] == "val/accuracy; mean over 2 fresh seeds"
    assert origin["metrics"] == {"val/accuracy": 0.9}
    assert origin["confirmed"]["seeds"] == [6, 7]
    assert origin["confirmed"]["val/accuracy"]["mean"] == pytest.approx(0.7)
    assert origin["confirmed"]["test/accuracy"] == {"mean": 0.6, "sd": pytest.approx(0.02**0.5), "n": 2}
    gain = origin["gain"]["val/accuracy"]
    assert (gain["difference"], gain["paired"], gain["among"]) == (pytest.approx(0.4), True, 1)
    assert gain["interval"] == pytest.approx([0.4 - 12.706205 * 0.1, 1.0])  # t of one degree; ends where accuracy does
    assert "test/accuracy" not in origin["gain"], "test was not read for the baseline"
    assert origin["code"] == {"version": "1", "data": "d", "libraries": {}}
    assert origin["mlflow_run"] is None


def test_a_final_training_repeats_what_its_study_says_of_gain_and_price(folder: StudyFolder, tmp_path: Path) -> None:
    """The same sentences as in the study's report; only of the configuration that these are about."""
    further = [{"val/conflicting_accuracy": value, "val/aligned_accuracy": 1 - value} for value in (0.2, 0.6, 0.9)]
    given = told(folder, *(replace(trial, further=of) for trial, of in zip(TRIALS, further, strict=True)))
    lead = report_lead_statements(given["results"])
    said = [str(one) for one in (*lead["Result"], *lead["Trade-off"]) if not isinstance(one, ResultParameters)]
    assert any("it rose on samples that conflict" in one for one in said)
    export_best(**given, out=tmp_path / "top.yaml", choice=CandidateSelection(top=2))
    best, other = (load_study(str(tmp_path / f"top-{place}.yaml")) for place in (1, 2))
    assert best.origin["told"] == said
    assert "told" not in other.origin
    final = final_training_spec(best, [8, 9])
    found = report_lead_statements(Results(final, record(Told("final", [0.5], seed=8))))["Search"]
    assert list(map(str, found)) == [f"The report of quickstart says of this configuration: {' '.join(said)}"]
    changed = replace(final, origin={**final.origin, "changed": ["train.epochs=1"]})
    assert "Search" not in report_lead_statements(Results(changed, record(Told("final", [0.5], seed=8))))


LABELLED = quickstart(
    "search.alternatives.method.balanced={name: bias_balanced_cross_entropy}",
    "search.space={method.name: {choices: [eps_sup_info_nce, balanced]}}",
    "search.baseline={method.name: eps_sup_info_nce}",
    "search.confirm={top: 0}",
)


def test_what_a_study_calls_a_method_is_its_name_on_each_page_with_the_methods_own_beside_it(tmp_path: Path) -> None:
    folder = Home(tmp_path / "home").create_study(LABELLED)
    trials = [
        Told("search" if place else "baseline", [0.5 + place / 4], params={"method.name": name})
        for place, name in enumerate(("eps_sup_info_nce", "balanced"))
    ]
    write_ledger(folder.ledger_file, *trials)
    results, out = Results(LABELLED, StudyRecord.load(folder.ledger_file)), tmp_path / "best.yaml"
    choices = "one of eps_sup_info_nce, balanced (bias_balanced_cross_entropy)"
    assert f"method.name: {choices}" in plan_text(plan_study(LABELLED))
    assert f"| method.name | searched: {choices} |" in page_to_markdown(build_report_page(results, ()))
    export_best(folder, results, out)
    assert '#   method.name: "balanced", which is bias_balanced_cross_entropy\n' in out.read_text()
    final = final_training_spec(load_study(str(out)), [8])
    trained = Results(final, record(Told("final", [0.5], seed=8)))
    page = page_to_markdown(build_report_page(trained, ()))
    assert "| method.name | balanced (bias_balanced_cross_entropy) |" in page
    card = model_card(
        trained, described_model(trained, trained.final_training_trials), data.load(final.base["data"]), ""
    )
    assert "`balanced` (`bias_balanced_cross_entropy`) on `small_conv_net`" in card
    assert "method.name balanced, train.epochs" in card
    other = load_study(str(out), ["method.name=cross_entropy"])
    assert other.exported_label("method") is None, "it is another method"


@pytest.mark.parametrize("version", [1, 3, None])
def test_a_file_of_another_version_is_refused(folder: StudyFolder, tmp_path: Path, version: int | None) -> None:
    """Version 1 had no digest and was never released."""
    path = tmp_path / "best.yaml"
    export_best(**told(folder, *TRIALS), out=path)
    written = path.read_text()
    line = "  format: 2\n"
    assert written.count(line) == 1
    path.write_text(written.replace(line, f"  format: {version}\n" if version else ""))
    message = rf"best\.yaml:\d+: origin\.format: {version} given, this version of study reads 2\. Export"
    with pytest.raises(UserError, match=message):
        load_study(str(path))


def test_unconfirmed_it_says_one_seed(folder: StudyFolder, tmp_path: Path) -> None:
    export_best(**told(folder, *TRIALS), out=tmp_path / "best.yaml")
    origin = load_study(str(tmp_path / "best.yaml")).origin
    assert origin is not None
    assert (origin["chosen_by"], origin["confirmed"]) == ("val/accuracy; one seed", {})


def test_the_top_ones_come_in_order(folder: StudyFolder, tmp_path: Path) -> None:
    given = told(folder, *TRIALS)
    paths = [one.path for one in export_best(**given, out=tmp_path / "top.yaml", choice=CandidateSelection(top=3))]
    assert [path.name for path in paths] == ["top-1.yaml", "top-2.yaml", "top-3.yaml"]
    order = [one.trial.params for one in given["results"].ranked_all]
    assert [load_study(str(path)).trial_config({}) for path in paths] == [
        SPEC.trial_config(params, seed=5) for params in order
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "top-1.yaml", "top-2.yaml", "top-3.yaml"]


@pytest.mark.parametrize(("trials", "top"), [([], 1), ([Told("search", [0.5], "pruned")], 1), (TRIALS, 4)])
def test_fewer_complete_trials_than_asked_for(
    folder: StudyFolder, tmp_path: Path, trials: list[Told], top: int
) -> None:
    complete = sum(one.state == "complete" for one in trials)
    with pytest.raises(UserError, match=rf"quickstart: {complete} complete configurations, {top} asked for \(--top\)"):
        export_best(**told(folder, *trials), out=tmp_path / "best.yaml", choice=CandidateSelection(top=top))
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("top", [1, 2])
@pytest.mark.parametrize("out", ["file/best.yaml", "folder"])
def test_a_file_that_cannot_be_written_is_told_and_nothing_is_left(
    folder: StudyFolder, tmp_path: Path, out: str, top: int
) -> None:
    (tmp_path / "file").touch()
    for name in ("folder", "folder-1"):
        (tmp_path / name).mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UserError, match="cannot be written"):
        export_best(**told(folder, *TRIALS), out=tmp_path / out, choice=CandidateSelection(top=top))
    assert sorted(tmp_path.iterdir()) == before
