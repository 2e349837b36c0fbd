import re

import numpy as np
import pytest

from study.analysis import write_report
from study.analysis.figures.representations import MODEL_FIGURES
from study.analysis.statistics.embedding import Embedding, embeddings
from study.data import Facts, joint_fingerprint, load_all
from study.errors import UserError
from study.home.events import Opened
from study.ranking import Results
from study.spec import load_study
from study.training import Trial

COUNT = 40
PARAMS = [{"method.alpha": 0.1, "method.lambda": 1.0, "method.epsilon": epsilon} for epsilon in (0.0, 0.25, 0.5)]


def embedding(label="trial 3", bias=True):
    chance = np.random.default_rng(0)
    features = chance.normal(size=(COUNT, 5)).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    target, given = np.arange(COUNT) % 2, np.arange(COUNT) // 2 % 3 if bias else None
    return Embedding(label, "test", Facts(2, 3 if bias else None, (3, 8, 8)), features, target, given)


def panels(figure):
    """Of which models a figure has panels."""
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    return list(
        dict.fromkeys(re.split(", (?:positive:|negative:|within |to |by )", title)[0] for title in titles if title)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MODEL_FIGURES)
def test_every_figure_is_drawn(name):
    figure = MODEL_FIGURES[name]([embedding("baseline"), embedding()])
    assert figure.get_suptitle()
    figure.draw_without_rendering()


def test_what_the_data_do_not_have_is_not_drawn():
    without = embedding(bias=False)
    assert MODEL_FIGURES["similarities"]([without]) is None
    assert MODEL_FIGURES["groups"]([without]) is None
    assert len(MODEL_FIGURES["tsne"]([without]).axes) == 1


@pytest.fixture(scope="module")
def models(spec, writer, tmp_path_factory):
    """Models of a baseline and a searched trial, as they were before training, and their study."""
    folder, study = tmp_path_factory.mktemp("models"), writer()
    study.append(Opened(owner="ada", data=joint_fingerprint(load_all(spec.data_sections))))
    study.trial("baseline", [0.3])
    study.trial("search", [0.5])
    for repeats in (0, 1, 0, 1):
        study.trial("confirm", [0.4], repeats=repeats, seed=1 + (repeats > 1), params=PARAMS[repeats])
    record = study.record()
    (data,) = load_all(spec.data_sections).values()
    for number in (2, 3):
        trial = record.trials[number]
        Trial(spec.trial_config(trial.params, trial.seed), data).save(folder / str(number))
    return record, lambda number: folder / str(number)


def test_models_are_looked_at(spec, models):
    record, file = models
    found = embeddings(Results(spec, record), file)
    assert [one.label for one in found] == ["baseline, epsilon 0", "trial 1, epsilon 0.25"]
    assert all(one.is_main for one in found)
    for one in found:
        assert one.split == "test"
        assert np.linalg.norm(one.features, axis=1) == pytest.approx(np.ones(len(one.target)), abs=1e-5)


@pytest.mark.slow
def test_every_confirmed_configuration_is_looked_at_and_the_epochs_that_were_kept(writer, tmp_path):
    """Those besides the baseline and the best, and epochs before the last, are in the similarities alone."""
    spec, study = load_study("fairkl_digits", ["train.epochs=4", "train.keep_epochs=[1, 3]"]), writer()
    study.append(Opened(owner="ada", data=joint_fingerprint(load_all(spec.data_sections))))
    study.trial("baseline", [0.3])
    for one, value in zip(PARAMS[1:], (0.6, 0.5), strict=True):
        study.trial("search", [value], params=one)
    for repeats, value in enumerate((0.3, 0.6, 0.5)):
        study.trial("confirm", [value], repeats=repeats, seed=1, params=PARAMS[repeats])
    record, (data,) = study.record(), load_all(spec.data_sections).values()

    def file(number, epoch=None):
        return tmp_path / f"{number} {epoch}"

    for number, epoch in ((3, None), (4, None), (4, 1), (5, None)):
        trial = record.trials[number]
        Trial(spec.trial_config(trial.params, trial.seed), data).save(file(number, epoch))
    found = embeddings(Results(spec, record), file)
    labels = [(one.label, one.is_main) for one in found]
    assert labels == [
        ("baseline, epsilon 0", True),
        ("trial 2, epsilon 0.5", False),
        ("trial 1, epsilon 0.25, epoch 1", False),
        ("trial 1, epsilon 0.25", True),
    ]
    rows = {name: panels(MODEL_FIGURES[name](found)) for name in ("similarities", "groups", "tsne")}
    assert rows["similarities"] == [label for label, _ in labels]
    assert rows["groups"] == rows["tsne"] == [label for label, is_main in labels if is_main]


@pytest.mark.slow
def test_a_report_shows_the_models(spec, models, tmp_path):
    record, file = models
    page = write_report(Results(spec, record), tmp_path, embeddings(Results(spec, record), file))
    assert "What the models learned" in page.read_text()
    assert {f"{name}.png" for name in MODEL_FIGURES} <= {path.name for path in (tmp_path / "figures").iterdir()}


def test_no_model_was_kept(spec, models, tmp_path):
    with pytest.raises(UserError, match="it has no kept models"):
        embeddings(Results(spec, models[0]), lambda number: tmp_path / str(number))


@pytest.mark.parametrize("left", [0, 4, 100, -1])
def test_a_model_that_was_cut_short_is_told(spec, models, tmp_path, left):
    def cut(number):
        path = tmp_path / str(number)
        if models[1](number).exists():
            path.write_bytes(models[1](number).read_bytes()[:left])
        return path

    with pytest.raises(UserError, match=r"/2: is damaged or cut short .*: study report quickstart$"):
        embeddings(Results(spec, models[0]), cut)


def test_other_data(spec, models, frozen):
    with pytest.raises(UserError, match="its data have changed"):
        embeddings(Results(spec, frozen), lambda number: models[1](2))
