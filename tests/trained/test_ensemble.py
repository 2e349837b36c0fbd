"""The networks of several seeds as one model: the mean of their probabilities, measured and loaded as such."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from final_training import people, train_table
from helpers import Told, quickstart, record
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from study import data, files
from study.analysis.report.conclusions import conclusion_statements
from study.analysis.tables.report_tables import summary_table
from study.commands.final_training import final_training_spec
from study.errors import UserError
from study.home.events import EnsembleMeasured
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Results, statistics_by_metric
from study.ranking.final_model import final_model_trials, trial_of_best_seed
from study.sweep.ensemble_metrics import measure_ensemble
from study.trained import ModelDescription, TrainedClassifier
from study.trained.evaluate import evaluate_model
from study.trained.model_card import described_model, model_card
from study.trained.model_files import find_model
from study.training import ensemble_probabilities

FINAL = final_training_spec(quickstart(), [0, 1])


def load(path: Path) -> TrainedClassifier:
    return TrainedClassifier.load_from_description(path, "cpu")


def measured(folder: StudyFolder) -> dict[str, float | None]:
    found = StudyRecord.load(folder.ledger_file).ensemble
    assert found is not None
    return dict(found.metrics)


@given(st.lists(st.lists(st.floats(-700, 700), min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_mean_is_of_probabilities_however_small_they_are(scores: list[list[float]]) -> None:
    each = [torch.tensor([row], dtype=torch.float64).log_softmax(1) for row in scores]
    found = ensemble_probabilities.mean_log_probabilities(each)
    expected = np.mean([one.exp().numpy() for one in each], 0)
    assert torch.isfinite(found).all()
    np.testing.assert_allclose(found.exp().numpy(), expected, rtol=1e-9, atol=1e-300)


def test_its_probabilities_are_the_mean_of_the_seeds(folder: StudyFolder) -> None:
    inputs = data.load(folder.load_spec().trial_data_sections[0]).splits["test"].inputs
    seeds = [load(folder.model_description_file(number)).predict_probabilities(inputs) for number in (0, 1)]
    found = load(folder.ensemble_description_file).predict_probabilities(inputs)
    assert np.abs(seeds[0] - seeds[1]).max() > 0.01
    np.testing.assert_allclose(found, np.mean(seeds, 0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("split", ["val", "test"])
def test_the_training_measured_what_its_model_is_worth(folder: StudyFolder, split: str) -> None:
    samples = data.load(folder.load_spec().trial_data_sections[0]).splits[split]
    probabilities = load(folder.ensemble_description_file).predict_probabilities(samples.inputs)
    found = measured(folder)
    right = probabilities.argmax(1) == samples.target
    loss = -np.log(probabilities[np.arange(len(right)), samples.target]).mean()
    assert found[f"{split}/accuracy"] == pytest.approx(right.mean())
    assert found[f"{split}/log_loss"] == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("split", ["val", "test"])
def test_evaluating_it_again_gives_what_the_training_measured(folder: StudyFolder, split: str, tmp_path: Path) -> None:
    again = evaluate_model(Home(tmp_path), folder.ensemble_description_file, split).metrics
    found = {name: value for name, value in measured(folder).items() if name.startswith(split)}
    assert again.keys() == found.keys()
    assert again == {name: None if value is None else pytest.approx(value, rel=1e-4) for name, value in found.items()}


def test_the_model_of_a_final_training_is_what_validates_best(folder: StudyFolder) -> None:
    results, model = Results.load(folder), find_model(folder, Results.load(folder))
    values = {trial.number: trial.last_metric("val/accuracy") for trial in results.final_training_trials}
    ensemble_value = measured(folder)["val/accuracy"]
    assert model is not None
    assert ensemble_value is not None
    is_ensemble = all(ensemble_value > value for value in values.values() if value is not None)
    best = trial_of_best_seed(results.spec, results.final_training_trials).number
    assert model.description == (
        folder.ensemble_description_file if is_ensemble else folder.model_description_file(best)
    )
    assert len(model.weights) == (2 if is_ensemble else 1)
    card = folder.model_card_file.read_text()
    assert ("The model is the ensemble of their 2 networks" in card) is is_ensemble


@pytest.mark.parametrize(
    ("metrics", "chosen"),
    [
        ({"val/accuracy": 0.71}, [0, 1]),
        ({"val/accuracy": 0.7}, [1]),
        ({"val/accuracy": 0.7 * (1 + 1e-8)}, [1]),  # rounding: networks that seeds do not tell apart are level
        ({"val/accuracy": 0.65}, [1]),
        ({"test/accuracy": 0.9}, [1]),
    ],
)
def test_the_ensemble_is_the_model_only_if_it_is_better_than_each_seed(
    metrics: dict[str, float], chosen: list[int]
) -> None:
    told = record(Told("final", [0.6]), Told("final", [0.7], seed=1))
    told.apply(EnsembleMeasured((0, 1), metrics, time=99.0))
    assert [trial.number for trial in final_model_trials(Results(quickstart(), told))] == chosen


def test_without_validation_the_ensemble_is_the_model() -> None:
    told = record(*(Told("final", [None], seed=seed, tested={"test/accuracy": 0.5}) for seed in (0, 1)))
    assert [trial.number for trial in final_model_trials(Results(quickstart(), told))] == [0]
    told.apply(EnsembleMeasured((0, 1), {"test/accuracy": 0.4}, time=99.0))
    assert [trial.number for trial in final_model_trials(Results(quickstart(), told))] == [0, 1]


@pytest.mark.parametrize("how", ["train+val", "folds"])
def test_without_any_sample_left_the_ensemble_is_the_model_and_all_say_so(tmp_path: Path, how: str) -> None:
    """The first seed would be arbitrary, and an ensemble's log loss is at most the mean of its networks'."""
    folds = ("data.folds=3", "data.val=biased") if how == "folds" else ()
    place = train_table(
        Home(tmp_path / "home"), people(tmp_path / "people.csv"), "data.test_share=0", *folds, with_val=True
    )
    results = Results.load(place)
    assert [trial.number for trial in final_model_trials(results)] == [0, 1]
    assert (model := find_model(place, results)) is not None
    assert model.description == place.ensemble_description_file
    said = "its log loss is at most the mean of theirs"
    assert said in place.model_card_file.read_text()
    assert any(said in str(told) for told in conclusion_statements(results))
    assert "ensemble" not in summary_table(results), "nothing of it was measured"


def test_a_training_judged_by_inferred_groups_measures_its_ensemble_by_them(tmp_path: Path) -> None:
    changes = "train.inferred_groups=gce", "train.bias_model_epochs=1", "search.metric=val/inferred_unbiased_accuracy"
    place = train_table(Home(tmp_path / "home"), people(tmp_path / "people.csv"), *changes)
    of_seed, joined = Results.load(place).final_training_trials[0], measured(place)
    assert {name for name in of_seed.reports[-1] if "inferred" in name} <= joined.keys()
    assert {name for name in of_seed.test_metrics if "inferred" in name} <= joined.keys()


def test_methods_that_decide_by_the_bias_too_make_none(tmp_path: Path) -> None:
    changes = "method={name: equalized_odds_postprocessing}", "data.test_share=0"
    place = train_table(Home(tmp_path / "home"), people(tmp_path / "people.csv"), *changes, with_val=True)
    assert [trial.number for trial in final_model_trials(Results.load(place))] == [0]


def test_the_card_of_an_ensemble_has_its_metrics(folder: StudyFolder) -> None:
    results = Results.load(folder)
    dataset = data.load(folder.load_spec().trial_data_sections[0])
    model = described_model(results, results.final_training_trials)
    card = model_card(results, model, dataset, "digits")
    assert "on seeds 3, 4. The model is the ensemble of their 2 networks" in card
    value = measured(folder)["test/accuracy"]
    assert value is not None
    assert f"| {100 * value:.1f}% |" in next(line for line in card.splitlines() if line.startswith("| test/accuracy |"))


def test_without_validation_its_card_says_what_holds_of_any_ensemble(folder: StudyFolder) -> None:
    results, dataset = Results.load(folder), data.load(folder.load_spec().trial_data_sections[0])
    base = {**results.spec.base, "train": {**results.spec.base["train"], "with_val": True}}
    results = Results(replace(results.spec, base=base), results.record)
    card = model_card(results, described_model(results, results.final_training_trials), dataset, "digits")
    assert "no worse" not in card, "its accuracy may be"
    assert "its log loss is at most the mean of theirs" in card
    for name in ("val/log_loss", "test/log_loss"):
        joined, losses = (
            measured(folder)[name],
            statistics_by_metric(results.spec.objective, results.final_training_trials),
        )
        assert joined is not None
        assert joined <= losses[name].mean


def test_a_changed_network_among_them_is_refused(folder: StudyFolder, tmp_path: Path) -> None:
    for file in (folder.ensemble_description_file, folder.model_file(0), folder.model_file(1)):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / folder.model_file(1).name).write_bytes(folder.model_file(0).read_bytes())
    model = tmp_path / folder.ensemble_description_file.name
    for read in (lambda: load(model), lambda: evaluate_model(Home(tmp_path / "home"), model, "val")):
        with pytest.raises(UserError, match=r"trial-00001\.safetensors: is not the file that study train wrote"):
            read()


def test_a_network_among_them_whose_features_are_no_numbers_is_refused_in_words(
    folder: StudyFolder, tmp_path: Path
) -> None:
    description = ModelDescription.read_file(folder.ensemble_description_file)
    for file in (folder.model_file(0), folder.model_file(1)):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    spoilt = tmp_path / folder.model_file(1).name
    values = load_file(spoilt)
    name = next(name for name in values if name.endswith("encoder.last.weight"))
    save_file({**values, name: torch.full_like(values[name], torch.inf)}, spoilt)
    model = tmp_path / folder.ensemble_description_file.name
    replace(description, other_weights={spoilt.name: files.sha256_of_file(spoilt)}).write_file(model)
    with pytest.raises(UserError, match=r"ensemble\.json: the features of 36\d of 36\d samples of val are not finite"):
        evaluate_model(Home(tmp_path / "home"), model, "val")


def test_its_description_reads_as_it_was_written(folder: StudyFolder, tmp_path: Path) -> None:
    found = ModelDescription.read_file(folder.ensemble_description_file)
    assert found.seeds_text == "3, 4"
    found.write_file(tmp_path / "again.json")
    assert ModelDescription.read_file(tmp_path / "again.json") == found


@pytest.mark.parametrize("is_whole", [True, False])
def test_an_ensemble_of_other_networks_is_not_the_model(folder: StudyFolder, tmp_path: Path, is_whole: bool) -> None:
    """Its file is of fewer seeds where the driver died before it wrote anew, or where the models were not fetched."""
    copy = StudyFolder(tmp_path)
    copy.ensemble_description_file.parent.mkdir()
    description = ModelDescription.read_file(folder.ensemble_description_file)
    if not is_whole:
        description = replace(description, other_weights={"trial-00007.safetensors": description.weights_digest})
    description.write_file(copy.ensemble_description_file)
    told = record(*(Told("final", [0.5], seed=seed) for seed in (3, 4)))
    told.apply(EnsembleMeasured((0, 1), {"val/accuracy": 0.7}, time=99.0))
    assert (find_model(copy, Results(quickstart(), told)) is not None) is is_whole


TESTED = [Told("final", [0.5 + 0.1 * seed], seed=seed, tested={"test/accuracy": 0.5}) for seed in (0, 1)]
"""Trials of two seeds whose models have read the test split."""


class TestMeasuring:
    """Of folders with what two networks said of the splits."""

    @pytest.fixture
    def dataset(self) -> data.Dataset:
        return data.load({"name": "biased_digits", "rho": 0.95})

    @pytest.fixture
    def place(self, tmp_path: Path, dataset: data.Dataset) -> StudyFolder:
        place = StudyFolder(tmp_path)
        for number in (0, 1):
            for split in ("val", "test"):
                scores = torch.zeros(len(dataset.splits[split]), 10)
                scores[torch.arange(len(scores)), torch.from_numpy(dataset.splits[split].target)] = 1 - number
                path = ensemble_probabilities.log_probabilities_file(place.model_file(number), split)
                path.parent.mkdir(exist_ok=True)
                ensemble_probabilities.write_log_probabilities(path, scores.log_softmax(1))
        return place

    def test_two_seeds_are_measured_once(self, place: StudyFolder, dataset: data.Dataset) -> None:
        told = record(*TESTED)
        found = measure_ensemble(place, FINAL, dataset, told)
        assert found is not None
        assert found.trials == (0, 1)
        assert found.metrics["val/accuracy"] == found.metrics["test/accuracy"] == 1.0
        told.apply(replace(found, time=99.0))
        assert measure_ensemble(place, FINAL, dataset, told) is None

    def test_a_split_that_was_read_later_is_measured_then(self, place: StudyFolder, dataset: data.Dataset) -> None:
        """Of a training that was stopped before the last of its models had read the test split."""
        told, path = record(*TESTED), place.model_file(1)
        late = ensemble_probabilities.log_probabilities_file(path, "test")
        late.rename(late.with_suffix(".later"))
        before = measure_ensemble(place, FINAL, dataset, told)
        assert before is not None
        told.apply(replace(before, time=99.0))
        late.with_suffix(".later").rename(late)
        after = measure_ensemble(place, FINAL, dataset, told)
        assert after is not None
        assert {name.split("/")[0] for name in after.metrics} == {"val", "test"}

    @pytest.mark.parametrize("other", ["running", "failed"])
    def test_a_seed_alone_is_none(self, place: StudyFolder, dataset: data.Dataset, other: str) -> None:
        told = record(Told("final", [0.5]), Told("final", [0.6], state=other, seed=1))
        assert measure_ensemble(place, FINAL, dataset, told) is None

    @pytest.mark.parametrize("fault", ["missing", "cut", "short"])
    def test_a_split_of_which_a_network_said_nothing_is_left_out(
        self, place: StudyFolder, dataset: data.Dataset, fault: str
    ) -> None:
        path = ensemble_probabilities.log_probabilities_file(place.model_file(1), "test")
        if fault == "missing":
            path.unlink()
        elif fault == "cut":
            path.write_bytes(path.read_bytes()[:100])
        else:
            ensemble_probabilities.write_log_probabilities(path, torch.zeros(3, 10))
        found = measure_ensemble(place, FINAL, dataset, record(*TESTED))
        assert found is not None
        assert {name.split("/")[0] for name in found.metrics} == {"val"}

    def test_it_is_known_without_metrics_only_where_nothing_was_to_validate(
        self, place: StudyFolder, dataset: data.Dataset
    ) -> None:
        for number in (0, 1):
            for split in ("val", "test"):
                ensemble_probabilities.log_probabilities_file(place.model_file(number), split).unlink()
        assert measure_ensemble(place, FINAL, dataset, record(*TESTED)) is None
        whole = final_training_spec(quickstart(), [0, 1], with_val=True)
        assert measure_ensemble(place, whole, dataset, record(*TESTED)) == EnsembleMeasured((0, 1), {})

    @pytest.mark.parametrize("are_same", [True, False])
    def test_it_is_judged_by_inferred_groups_that_all_seeds_share(
        self, place: StudyFolder, dataset: data.Dataset, are_same: bool
    ) -> None:
        target = torch.from_numpy(dataset.splits["val"].target)
        for number in (0, 1):
            path = ensemble_probabilities.log_probabilities_file(place.model_file(number), "val")
            told, groups = ensemble_probabilities.read_log_probabilities(path), target if are_same else target + number
            assert told is not None
            ensemble_probabilities.write_log_probabilities(path, told.log_probabilities, groups % 10)
        found = measure_ensemble(place, FINAL, dataset, record(*TESTED))
        assert found is not None
        assert ("val/inferred_unbiased_accuracy" in found.metrics) is are_same
        assert found.metrics["val/accuracy"] == 1.0

    def test_a_reading_of_the_test_split_that_nobody_recorded_is_not_used(
        self, place: StudyFolder, dataset: data.Dataset
    ) -> None:
        """The driver was stopped while a network had read it: the study says how often the test split was read."""
        told = record(TESTED[0], replace(TESTED[1], tested={}))
        found = measure_ensemble(place, FINAL, dataset, told)
        assert found is not None
        assert {name.split("/")[0] for name in found.metrics} == {"val"}
