"""What a model card says."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import Told, quickstart, record

from study import data
from study.commands.final_training import final_training_spec
from study.data import Dataset, Split
from study.home.events import SessionOpened
from study.home.folder import StudyFolder
from study.ranking import Results
from study.ranking.final_model import trial_of_best_seed
from study.trained.model_card import described_model, model_card

ORIGIN = {"study": "search", "trial": 7, "trials": 25, "chosen_by": "val/accuracy; one seed", "test_readings": 6}


def dataset(class_names: tuple[str, str] = ("crow", "gull"), bias_names: tuple[str, str] = ("land", "sea")) -> Dataset:
    """Two classes, two bias classes; on test 3, 1, 0 and 2 samples of the groups."""
    whole = data.load({"name": "biased_digits", "rho": 0.95})
    target, bias = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    split = Split(np.zeros((6, 3, 8, 8), np.uint8), target, bias)
    facts = replace(whole.facts, classes=2, bias_classes=2, class_names=class_names, bias_names=bias_names)
    facts = replace(facts, aligned=(0, 1))
    return Dataset(facts, {"train": split, "val": split, "test": split})


def times(count: int) -> Dataset:
    """That many of each sample."""
    one = dataset()
    splits = {
        name: Split(*(np.repeat(array, count, 0) for array in (split.inputs, split.target, split.bias)))
        for name, split in one.splits.items()
    }
    return replace(one, splits=splits)


def text(*trials: Told, of: Dataset | None = None, changed: str | None = None) -> str:
    spec = replace(
        final_training_spec(quickstart(), [1, 2], "birds"), origin=ORIGIN | ({"changed": [changed]} if changed else {})
    )
    found = record(*trials)
    about = "birds: from the shore.\n\nMore."
    results = Results(spec, found)
    model = described_model(results, [trial_of_best_seed(spec, list(found.trials.values()))])
    return model_card(results, model, of or dataset(), about)


def final(value: float, seed: int, **groups: float) -> Told:
    tested = {"test/accuracy": value - 0.1, "test/equalized_odds": 0.25}
    tested |= {f"test/{name}_accuracy": one for name, one in groups.items()}
    return Told("final", [value], seed=seed, tested=tested)


def test_it_is_about_the_seed_that_validation_prefers() -> None:
    found = text(final(0.7, 1, group_0_0=0.5), final(0.8, 2, group_0_0=1.0, group_0_1=0.0, group_1_1=0.5))
    assert found.startswith("# birds\n")
    assert (
        "trained for 20 epochs on seeds 1, 2. The weights are those of seed 2, the best of them by val/accuracy."
        in found
    )
    assert "| val/accuracy | 75.0 ± 7.1% | - | 80.0% |" in found
    assert "| test/accuracy | 65.0 ± 7.1% | - | 70.0% |" in found
    assert "birds: from the shore." in found
    assert "Classes: crow, gull." in found


def test_what_was_fitted_once_has_no_seeds() -> None:
    spec = final_training_spec(quickstart("train.epochs=1", "search.early_stopping=none"), [6], "trees")
    spec = replace(spec, base={**spec.base, "method": {"name": "reference", "model": "logistic_regression"}})
    found = record(final(0.7, 6, group_0_0=1.0))
    results = Results(spec, found)
    card = model_card(results, described_model(results, [found.trials[0]]), dataset(), "birds")
    head, _, rest = card.partition("## Data")
    metrics = rest.partition("## Metrics")[2].partition("## How")[0]
    assert "scikit-learn's `logistic_regression`, fitted once" in head
    assert "| metric | value | 95% |" in metrics
    assert "seed" not in head.removeprefix("# trees").replace("knows no seed", "")
    assert "| crow | land | 3 | 100.0% |" in metrics
    assert "seed" not in metrics


def test_how_a_reference_was_chosen_is_told_with_its_whole_rule() -> None:
    rule = "val/accuracy: what needs no search unless beaten by more than 0.5 standard errors where val/auc >= 0.6"
    origin = {"study": "trees", "reference": "logistic_regression", "trials": 16, "chosen_by": rule}
    spec = replace(final_training_spec(quickstart(), [1, 2], "birds"), origin=origin)
    results = Results(spec, record(final(0.8, 1)))
    card = model_card(results, described_model(results, [results.record.trials[0]]), dataset(), "birds")
    told = "of 16 configurations that were tried none was chosen over it, on the validation split alone (" + rule + ")."
    assert told in card.replace("\\", "")


def test_what_differs_from_the_defaults_is_named() -> None:
    chosen = text(final(0.8, 1), final(0.7, 2)).partition("## How it was chosen")[2]
    told = chosen.split("\n\n")[1]
    for part in ("method.name eps", "method.regulariser fair", "train.epochs 20", "; other keys have their defaults."):
        assert part in told.replace("\\", "")
    for key in ("train.momentum", "train.final", "model.head"):
        assert key not in told


def test_groups_come_with_the_intervals_of_their_samples() -> None:
    found = text(final(0.7, 1, group_0_0=0.5), final(0.8, 2, group_0_0=1.0, group_0_1=0.0, group_1_1=0.5))
    assert "| crow | land | 3 | 75.0 ± 35.4% | 100.0% | 43.9 to 100.0% |" in found
    assert "| crow | sea | 1 | 0.0% | 0.0% | 0.0 to 79.3% |" in found
    assert "| gull | sea | 2 | 50.0% | 50.0% | 9.5 to 90.5% |" in found
    assert "- equalized_odds 0.250: Mean gap between bias classes" in found
    assert "On test equalized_odds is no number: of class 'gull' no two groups have samples; equal_opp" in found


def test_the_group_that_is_served_worst_is_named_with_its_samples() -> None:
    """Whatever its size; here of 30, 10 and 20."""
    tested = {"group_0_0": 1.0, "group_0_1": 0.2, "group_1_1": 0.5, "worst_group": 0.2}
    found = text(final(0.7, 1), final(0.8, 2, **tested), of=times(10))
    expected = (
        "On test the model serves class 'crow' with bias class 'sea' worst of 3 groups: 2 of 10 right (6% to 51%), "
        "over all 70.0%. No sample on test is of class 'gull' with bias class 'land'."
    )
    assert expected in found
    few = text(final(0.8, 2, **tested))
    assert "too small to judge: class 'crow' with bias class 'sea', on average over the seeds 0.2 of 1 right" in few
    alike = {"group_0_0": 0.7, "group_0_1": 0.7, "group_1_1": 0.7, "worst_group": 0.7}
    assert "worst of" not in text(final(0.8, 2, **alike), of=times(10))


def test_what_is_not_defined_is_named_as_such() -> None:
    """As a gap of groups of which one has no samples; on each seed, or on that of the weights alone."""
    undefined = Told("final", [0.8], seed=2, tested={"test/accuracy": 0.7, "test/equalized_odds": None})
    found = text(final(0.7, 1), undefined)
    assert "- equalized_odds not defined: Mean gap" in found
    assert "| test/equalized_odds | 0.250 | - | not defined |" in found
    assert "- equalized_odds not defined: Mean gap" in text(undefined)


def test_the_users_names_are_printed_as_they_are() -> None:
    """A class is named as its folder is, which may hold what Markdown takes for its own."""
    named = dataset(("a|b", "*c* <i>"), ("`land`", "x\n\n# y"))
    found = text(
        final(0.7, 1, group_0_0=0.5), final(0.8, 2, group_1_1=0.5, group_0_0=1.0), of=named, changed="a=<b>|*c*"
    )
    rows = [line for line in found.splitlines() if line.startswith("|")]
    assert r"| a\|b | \`land\` | 3 | 75.0 ± 35.4% | 100.0% | 43.9 to 100.0% |" in rows
    assert r"| \*c\* \<i\> | x \# y | 2 | 50.0% | 50.0% | 9.5 to 90.5% |" in rows
    assert r"Classes: a\|b, \*c\* \<i\>." in found
    assert r"Bias (sensitive, spurious) classes: \`land\`, x \# y." in found
    assert r"Changed since: a=\<b\>\|\*c\*." in found


def test_it_says_what_the_search_gained_and_how_sure_that_is() -> None:
    gain = {"difference": 0.22, "interval": [0.15, 0.29], "paired": True, "among": 2}
    gains = {"val/accuracy": gain, "test/accuracy": {"difference": 0.1, "interval": None, "paired": False, "among": 1}}
    spec = replace(final_training_spec(quickstart(), [1, 2], "birds"), origin=ORIGIN | {"gain": gains})
    found = record(final(0.8, 1), final(0.7, 2))
    best = described_model(Results(spec, found), [trial_of_best_seed(spec, list(found.trials.values()))])
    said = model_card(Results(spec, found), best, dataset(), "birds")
    assert (
        "In that study it differed from the baseline by +22.0 points in val/accuracy (95% interval +15.0 to "
        "+29.0, Student's t of the differences by seed; the choice among 2 configurations is allowed for)." in said
    )
    assert "by +10.0 points in test/accuracy, which one seed cannot tell from luck." in said
    noise = {"val/accuracy": {**gain, "interval": [0.22, 0.22 + 1e-16]}}
    alike = model_card(Results(replace(spec, origin=ORIGIN | {"gain": noise}), found), best, dataset(), "birds")
    assert "by +22.0 points in val/accuracy, on every seed alike." in alike
    carried = ORIGIN | {"gain": gains, "told": ["It rose to 70%.", "On *test* it fell."]}
    repeated = model_card(Results(replace(spec, origin=carried), found), best, dataset(), "birds")
    assert r"The report of that study says of it: It rose to 70%. On \*test\* it fell." in repeated
    assert "differed from the baseline" not in repeated, "the report's own words are enough"
    changed = replace(spec, origin=carried | {"changed": ["train.epochs=1"]})
    assert "The report of that study" not in model_card(Results(changed, found), best, dataset(), "birds")
    assert "differed from the baseline" not in model_card(Results(changed, found), best, dataset(), "birds")


def test_a_gain_on_the_samples_of_all_folds_is_not_said_to_be_by_seed() -> None:
    """Its interval is that of samples drawn anew; only the gain on test is by the folds' models."""
    gain = {"difference": 0.22, "interval": [0.15, 0.29], "paired": True, "among": 2}
    joined, by_model = {"mean": 0.8, "sd": None, "n": 5}, {"mean": 0.8, "sd": 0.01, "n": 5}
    origin = ORIGIN | {
        "gain": {"val/accuracy": gain, "test/accuracy": gain},
        "confirmed": {"seeds": [1, 2, 3, 4, 5], "val/accuracy": joined, "test/accuracy": by_model},
    }
    spec, found = replace(final_training_spec(quickstart(), [1, 2], "birds"), origin=origin), record(final(0.8, 1))
    results = Results(spec, found)
    said = model_card(results, described_model(results, [found.trials[0]]), dataset(), "birds")
    assert "val/accuracy (95% interval +15.0 to +29.0, by the samples of all folds drawn anew" in said
    assert "test/accuracy (95% interval +15.0 to +29.0, Student's t of the differences by seed" in said
    alike = {**gain, "difference": 0.0, "interval": [0.0, 0.0]}
    spec = replace(spec, origin={**origin, "gain": {"val/accuracy": alike}})
    said = model_card(Results(spec, found), described_model(results, [found.trials[0]]), dataset(), "birds")
    assert "by +0.0 points in val/accuracy, on every draw of the samples alike." in said
    without = {**gain, "interval": None}
    spec = replace(spec, origin={**origin, "gain": {"val/accuracy": without}})
    said = model_card(Results(spec, found), described_model(results, [found.trials[0]]), dataset(), "birds")
    assert "by +22.0 points in val/accuracy, whose error on other samples is not known." in said


@pytest.mark.parametrize(
    ("gap", "why"),
    [
        (0.05, r"the best of those that keep val/equalized_odds \<= 0.1 by val/accuracy."),
        (
            0.2,
            r"the one of them that comes closest to the limits: it misses val/equalized_odds \<= 0.1 by 0.1 ",
        ),
    ],
)
def test_a_seed_that_the_limits_chose_is_not_called_the_best_of_all(gap: float, why: str) -> None:
    spec = final_training_spec(quickstart("search.constraints=[val/equalized_odds <= 0.1]"), [1, 2], "birds")
    found = record(
        Told("final", [0.9], seed=1, further={"val/equalized_odds": 0.3}),
        Told("final", [0.8], seed=2, further={"val/equalized_odds": gap}),
    )
    best = trial_of_best_seed(spec, list(found.trials.values()))
    results = Results(spec, found)
    assert f"of seed 2, {why}" in model_card(results, described_model(results, [best]), dataset(), "birds")


@pytest.mark.slow
def test_the_card_of_a_real_training(folder: StudyFolder) -> None:
    found = folder.model_card_file.read_text()
    assert "10 x 10 groups, too many to list" in found
    assert "given in a study file, not chosen by a search of this home" in found
    assert "Readings of the test split: 2 by this training" in found


def test_it_says_which_weights_training_began_from() -> None:
    entry = {"name": "ResNet18_Weights.IMAGENET1K_V1", "file": "resnet18-f37072fd.pth", "sha256": "f37072fd" + 56 * "0"}
    spec = final_training_spec(quickstart("model={name: resnet18, weights: imagenet}"), [1, 2], "birds")
    found = record(final(0.8, 1), final(0.7, 2))
    found.sessions.append(SessionOpened(owner="ada", weights=[entry]))
    model = described_model(Results(spec, found), [trial_of_best_seed(spec, list(found.trials.values()))])
    words = model_card(Results(spec, found), model, dataset(), "birds: from the shore.")
    assert entry["sha256"] in words
    assert "Training began" not in text(final(0.8, 1), final(0.7, 2))
