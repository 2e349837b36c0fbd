"""`study init` on a table: its columns, its gaps, bias labels that some rows lack, a validation split of its own."""

from dataclasses import replace
from pathlib import Path

import pytest
from init_folder import birds_and_people, nobody, of, refused

from study import methods
from study.commands import single_trial as one_trial
from study.commands.init import METHOD_REASON_BY_SITUATION, write_study_file
from study.commands.init_answers import AnswerSource
from study.spec import load_study


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return birds_and_people(tmp_path, monkeypatch)


def test_a_study_of_the_users_table_runs() -> None:
    write_study_file(of("info_nce", "wcl", data="people.csv", target="paid", bias="none"), None, False, nobody())
    spec = load_study("mine.yaml", ["train.epochs=1"])
    assert (spec.metric, spec.base["model"]["name"]) == ("val/worst_class_accuracy", "mlp")
    assert spec.search.enqueue
    assert spec.search.margin == 0.0
    assert spec.base["train"]["augmentation"] == "corrupt_columns"
    (epoch,) = one_trial.SingleTrial(spec).epochs()
    assert 0.0 <= epoch["val/worst_class_accuracy"] <= 1.0


def test_a_tables_draft_weighs_classes_and_cells_in_a_linear_network_beside_the_papers_loss() -> None:
    write_study_file(of(data="people.csv", target="paid", bias="group"), None, False, nobody())
    spec = load_study("mine.yaml", ["train.epochs=1"])
    assert (spec.base["model"]["name"], spec.base["method"]["name"]) == ("linear", "cross_entropy")
    assert spec.search.space["method.name"].choices == ["cross_entropy", "eps_sup_info_nce_fair_kl"]
    assert {"method.class_weights", "method.cell_weights", "train.weight_decay"} <= spec.search.space.keys()
    (first,) = spec.search.enqueue
    assert (
        spec.trial_document(first)["method"] | {"name": "cross_entropy", "class_weights": 1.0}
        == (spec.trial_document(first)["method"])
    )
    baseline = spec.trial_document(spec.search.baseline)["method"]
    assert (baseline["name"], baseline["class_weights"], baseline["cell_weights"]) == ("cross_entropy", 0.0, 0.0)
    contrastive = spec.trial_document({"method.name": "eps_sup_info_nce_fair_kl"})["method"]
    assert (contrastive["regulariser"], contrastive["cross_entropy"]) == ("fair_kl", "plain")
    (epoch,) = one_trial.SingleTrial(spec).epochs()
    assert 0.0 <= epoch["val/shrunk_unbiased_accuracy"] <= 1.0


def test_without_bias_labels_a_tables_draft_weighs_classes_alone() -> None:
    write_study_file(of(data="people.csv", target="paid", bias="none"), None, False, nobody())
    spec = load_study("mine.yaml")
    assert "method.class_weights" in spec.search.space
    assert "method.cell_weights" not in spec.search.space
    assert spec.search.space["method.name"].choices == ["cross_entropy", "learning_from_failure"]


@pytest.mark.parametrize(
    ("gaps", "flag", "missing", "rows"),
    [
        ("3,,1,a\n4,,0,b", None, "fill", 2),
        ("3,,1,a\n4,,0,b", "drop", "drop", 2),
        ("3,2,,a\n4,,0,b", None, "drop", 2),
        ("3,2,1,a", None, "error", 0),
        ("3, ,1,a\n4,,0,b", None, "fill", 2),
        ("3,\u00a0 ,1,a", None, "fill", 1),
        ("3,2, ,a", None, "drop", 1),
    ],
)
def test_missing_values_of_a_table_do_not_end_it(gaps: str, flag: str | None, missing: str, rows: int) -> None:
    with Path("people.csv").open("a") as file:
        file.write(f"\n{gaps}\n")
    flags = of("cross_entropy", data="people.csv", target="paid", bias="group", missing=flag)
    path = write_study_file(flags, None, False, nobody())
    assert load_study(str(path)).base["data"]["missing"] == missing
    count = 80 + len(gaps.splitlines())
    assert (f"{rows} of {count} rows have missing values: '" in path.read_text()) == bool(rows)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"missing": "fil"}, "'fil' given. Did you mean 'fill'? Allowed: fill, drop"),
        ({"guess": "colour"}, "--guess colour: is for images, the data are a table"),
    ],
)
def test_an_answer_that_does_not_suit_a_table_is_told(flags: dict[str, str], words: str) -> None:
    assert words in refused(of("cross_entropy", data="people.csv", target="paid", bias="group", **flags))


def test_bias_labels_of_some_samples_are_enough(folder: Path) -> None:
    table = folder / "birds" / "list.csv"
    rows = table.read_text().splitlines()
    table.write_text("\n".join([rows[0], *(f"{row.rpartition(',')[0]}," for row in rows[1:21]), *rows[21:]]))
    wishes = ("data.size=8", "train.epochs=1")
    flags = of(data="birds", file="image", target="kind", bias="place", assignments=wishes)
    told: list[str] = []
    path = write_study_file(flags, None, False, AnswerSource(None, told.append))
    assert "bias_gaps: unknown: 20 of 60 rows have no bias label; they stay, it is guessed" in told
    assert told[-1] == f"method: eps_sup_info_nce with fair_kl, as {METHOD_REASON_BY_SITUATION['some_labels']}"
    spec = load_study(str(path))
    assert spec.base["method"]["bias_source"] == "some_labels"
    (epoch,) = one_trial.SingleTrial(spec).epochs()
    assert 0.0 <= epoch["val/shrunk_unbiased_accuracy"] <= 1.0
    ((key, why),) = methods.unmet_needs({**spec.base["method"], "bias_source": "labels"}, spec.data_facts)
    assert (key, why.partition(" (")[0]) == ("regulariser", "needs the bias of every sample")


@pytest.mark.parametrize("val", ["biased", "given"])
def test_the_validation_split_is_the_users_own_where_there_is_one(val: str) -> None:
    columns = [("train", "val", "test")[n % 3] for n in range(60)]
    rows = Path("birds/list.csv").read_text().splitlines()
    header, *samples = rows
    text = [f"{header},part", *(f"{row},{part}" for row, part in zip(samples, columns, strict=True))]
    Path("birds/list.csv").write_text("\n".join(text))
    wishes = ("data.split=part",) if val == "given" else ()
    flags = of("sup_con", data="birds", file="image", target="kind", bias="place", assignments=wishes)
    path = write_study_file(flags, None, False, nobody())
    assert load_study(str(path)).base["data"]["val"] == val
    assert f"# val: {val}: " in path.read_text()


def test_the_positive_class_is_written_where_names_tell() -> None:
    rows = [f"{row % 5}.5,{'fm'[row % 3 == 0]},{('approved', 'denied')[row % 2]}" for row in range(80)]
    Path("decisions.csv").write_text("\n".join(["income,sex,decision", *rows]) + "\n")
    path = write_study_file(
        of("cross_entropy", data="decisions.csv", target="decision", bias="sex"), None, False, nobody()
    )
    assert load_study(str(path)).base["data"]["positive"] == "approved"
    assert load_study(str(path)).data_facts.class_names == ("denied", "approved")
    asked: list[str] = []

    def ask(question: str, default: str | None) -> str:
        asked.append(f"{question}: {default}")
        return "denied" if question.startswith("Positive class") else default or "none"

    flags = of("cross_entropy", data="decisions.csv", target="decision", bias="sex")
    write_study_file(flags, Path("again.yaml"), False, AnswerSource(ask, asked.append))
    assert any("Positive class" in line and line.endswith("denied: approved") for line in asked)
    assert load_study("again.yaml").base["data"]["positive"] == "denied"


def test_a_bias_of_many_numbers_is_drafted_in_quartiles() -> None:
    lines = [f"{n % 7},{20 + n % 31},{n % 2},{'ab'[n // 2 % 2]}" for n in range(160)]
    Path("people.csv").write_text("\n".join(["income,age,paid,group", *lines]))
    told: list[str] = []
    flags = of("cross_entropy", data="people.csv", target="paid", bias="age")
    write_study_file(flags, None, False, AnswerSource(None, told.append))
    spec = load_study("mine.yaml")
    assert spec.base["data"]["bias_bins"] == "quartiles"
    assert spec.data_facts.bias_names == ("under 26.75", "26.75 to under 34.5", "34.5 to under 42.25", "42.25 and over")
    assert "bias_bins: quartiles. Other groups: --set data.bias_bins=[25, 40]" in told
    assert "inputs: 2 columns, which become 3 numbers for the network" in told
    assert load_study("mine.yaml", ["data.bias_bins=[25, 40]"]).data_facts.bias_classes == 3
    given = replace(flags, name="given", assignments=["data.bias_bins=[25, 40]"])
    assert load_study(str(write_study_file(given, None, False, nobody()))).data_facts.bias_classes == 3
    codes = replace(flags, name="codes", bias="income")
    Path("people.csv").write_text(
        "\n".join(["income,age,paid", *(f"{n % 12},{n * 3 % 50},{n // 2 % 2}" for n in range(240))])
    )
    assert load_study(str(write_study_file(codes, None, False, nobody()))).data_facts.bias_classes == 12


def test_columns_are_found_as_the_given_keys_say(folder: Path) -> None:
    """Also where they are needed before the file is drafted: for names, gaps and the groups of a bias of numbers."""
    people = (folder / "people.csv").read_text().splitlines()
    rows = [line[:-1].replace(",", "|") + ("?" if line[0] == "6" else line[-1] + "\u00e4") for line in people[1:]]
    text = "\n".join([people[0].replace(",", "|").replace("group", "gr\u00fcppe"), *rows])
    (folder / "other.txt").write_bytes(text.encode("cp850"))
    keys = ("data.separator=|", "data.encoding=cp850", "data.missing_marks=[?]")
    flags = of("cross_entropy", data="other.txt", target="paid", bias="gr\u00fcppe", assignments=keys)
    data = load_study(str(write_study_file(flags, None, False, nobody()))).base["data"]
    assert (data["separator"], data["encoding"], data["bias_gaps"]) == ("|", "cp850", "unknown")
    Path("mine.yaml").unlink()
    assert "data.encoding: 'cp85' given" in refused(replace(flags, assignments=("data.encoding=cp85",)))
    assert "data.separator: ':' given" in refused(replace(flags, assignments=("data.separator=:",)))


def test_a_text_file_beside_pictures_is_a_table_where_it_is_named(folder: Path) -> None:
    table = folder / "birds" / "list.csv"
    rows = [line.replace(",", "\t").replace("gull", "M\u00f6we") for line in table.read_text().splitlines()]
    (folder / "birds" / "labels.txt").write_text("\n".join(rows), encoding="utf-16")
    flags = of(data="birds", file="image", target="kind", bias="place")
    plain = load_study(str(write_study_file(flags, None, False, nobody()))).base["data"]
    assert plain["labels"] == "list.csv"
    spec = load_study(str(write_study_file(replace(flags, labels="labels.txt"), None, True, nobody())))
    assert spec.data_facts.class_names == ("M\u00f6we", "wren")
