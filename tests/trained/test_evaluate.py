"""Measuring a trained model."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from study import data, files
from study.errors import UserError
from study.home.folder import Home
from study.trained import ModelDescription, TrainedClassifier
from study.trained.evaluate import class_recall_sentences, evaluate_model


def test_a_model_whose_features_are_no_numbers_is_refused_in_words(model: Path, tmp_path: Path) -> None:
    description = ModelDescription.read_file(model)
    weights = model.parent / description.weights
    values = load_file(weights)
    name = next(name for name in values if name.endswith("encoder.last.weight"))
    save_file({**values, name: torch.full_like(values[name], torch.inf)}, weights)
    replace(description, weights_digest=files.sha256_of_file(weights)).write_file(model)
    with pytest.raises(UserError, match=r"json: the features of 36\d of 36\d samples of val are not finite"):
        evaluate_model(Home(tmp_path / "home"), model, "val")


def test_the_network_that_found_groups_for_the_search_is_not_needed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    expected = evaluate_model(Home(tmp_path / "home"), model, "val")
    description = ModelDescription.read_file(model)
    train = {**description.config["train"], "inferred_groups": "early"}
    replace(description, config={**description.config, "train": train}).write_file(model)
    assert evaluate_model(Home(tmp_path / "home"), model, "val") == expected
    assert not list((tmp_path / "data").rglob("*bias_guess*"))


def test_a_model_whose_data_have_a_key_that_is_not_known_is_refused(model: Path, tmp_path: Path) -> None:
    description = ModelDescription.read_file(model)
    of_data = {**description.config["data"], "row_numbers": "leave_out"}
    replace(description, config={**description.config, "data": of_data}).write_file(model)
    with pytest.raises(UserError, match=r"data\.row_numbers: unknown key"):
        evaluate_model(Home(tmp_path / "home"), model, "val")


def test_a_model_knows_its_own_data(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.trained.evaluate.test_split_fingerprint", lambda dataset: "another one")
    with pytest.raises(UserError, match="these are the model's own data"):
        evaluate_model(Home(tmp_path / "home"), model, "all")


def test_a_description_names_no_weights_outside_its_folder(model: Path, tmp_path: Path) -> None:
    description = ModelDescription.read_file(model)
    weights = model.parent / description.weights
    weights.rename(weights.parents[1] / "others")
    for name in ("../others", str(weights.parents[1] / "others")):
        replace(description, weights=name).write_file(model)
        for read in (
            TrainedClassifier.load_from_description,
            lambda file: evaluate_model(Home(tmp_path / "home"), file, "val"),
        ):
            with pytest.raises(UserError, match="cannot be the name of a file in"):
                read(model)


def test_of_many_groups_the_worst_are_named_by_their_own_counts(model: Path, tmp_path: Path) -> None:
    """Of 100 groups none has a metric of its own."""
    evaluated = evaluate_model(Home(tmp_path / "home"), model, "val", device="cpu")
    found = evaluated.worst_group
    assert found is not None
    description = ModelDescription.read_file(model)
    split = data.load(description.config["data"]).splits["val"]
    assert split.bias is not None
    predicted = TrainedClassifier.load_from_description(model, "cpu").predict_probabilities(split.inputs).argmax(1)
    for group in (*found.worst, *found.too_small):
        target, bias = (int(part.strip("'")) for part in group.name.removeprefix("class ").split(" with bias class "))
        of_group = (split.target == target) & (split.bias == bias)
        assert (group.samples, group.right) == (of_group.sum(), (predicted == target)[of_group].sum())
    assert len({group.name for group in (*found.worst, *found.too_small)}) == sum(
        size < 10 for size in found.group_sizes
    )
    assert sum(found.group_sizes) == sum(evaluated.group_sizes.values()) == len(split)
    assert evaluated.group_sizes["val/group_0_1_accuracy"] == ((split.target == 0) & (split.bias == 1)).sum()


def test_a_file_is_refused_for_a_model_of_data_that_have_no_files_of_the_users(model: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"^--data \S*new\.csv: the model learned biased_digits, which has no files"):
        evaluate_model(Home(tmp_path / "home"), model, "all", str(tmp_path / "new.csv"))


def test_the_class_that_is_recognised_least_is_named_with_what_it_is_taken_for() -> None:
    (told,) = class_recall_sentences(
        ["cat", "dog", "fox", "owl"], [[9, 0, 1, 0], [1, 3, 6, 0], [0] * 4, [0, 0, 0, 7]], None
    )
    least = "Of the classes, 'dog' is recognised least: 3 of 10 right, 6 called 'fox'."
    assert told == f"{least} Right of the others: 'cat' 9 of 10, 'owl' 7 of 7."
    assert class_recall_sentences(["cat", "dog"], [[9, 1], [1, 9]], 0.95) == []
    assert class_recall_sentences(["cat", "dog"], [[0, 0], [1, 9]], None) == []


@pytest.mark.parametrize(
    ("confusion", "auc", "is_off"),
    [
        ([[20, 80], [0, 100]], 0.98, True),  # 60% right of each class alike, where 93% could be
        ([[88, 12], [6, 94]], 0.97, False),
        ([[20, 80], [0, 100]], 0.65, False),  # the best threshold gets 61%
    ],
)
def test_a_threshold_that_is_off_is_told_with_what_to_do(confusion: list[list[int]], auc: float, is_off: bool) -> None:
    told = " ".join(class_recall_sentences(("ill", "well"), confusion, auc))
    assert ("about 93% of each class" in told) is is_off
    assert ("columns p(CLASS) of study predict" in told) is is_off
