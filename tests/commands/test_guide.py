"""The guide in the terminal: its list, a page, the passages that answer some words."""

import re
from pathlib import Path

import pytest
import yaml
from pages import GUIDE

from study.commands.guide import (
    _count_stems,
    _read_everyday_words,
    first_passage_of_sections,
    guide_text,
    passage_with_context,
    read_pages,
    search_passages,
    split_passages,
)
from study.errors import UserError
from study.methods import method_names
from study.metrics import CELLS_BY_GROUP_METRIC, METRICS


def test_no_word_shows_the_list_of_all_pages() -> None:
    listed = guide_text([])
    assert all(f"({name}.md)" in listed for name in read_pages() if name != "index")


@pytest.mark.parametrize("words", [["study-files"], ["Study", "files"], ["study-files.md"]])
def test_a_page_by_its_name(words: list[str]) -> None:
    source = (GUIDE / "study-files.md").read_text("utf-8")
    shown = guide_text(words)
    assert "asked:" in source
    assert "asked:" not in shown
    lines = tuple(source.splitlines())
    assert [line for line in shown.splitlines() if not any(one.startswith(line.rstrip(" |")) for one in lines)] == []
    assert shown.count("\n#") == source.count("\n#")


ONE = """# One

The worst
group of trials.

```sh
study group # the WORST
```

More of groups.
"""
TWO = """# Two

## The worst group

| group | what |
|---|---|
| `rare_group` | other |

Not this? Its heading.
"""


def test_passages_with_most_words_come_first_in_any_form_then_those_for_users_then_headings() -> None:
    text = {"changelog": "# Changes\n\nThe worst group.\n", "one": ONE, "two": TWO}
    every = [passage for name, page in text.items() for passage in split_passages(name, page)]
    found = search_passages(["how", "worst?", "or", "Groups"], every)
    pages = [passage.guide_section.page for passage in found]
    assert pages[:2] == ["two"] * 2
    assert pages.index("changelog") < 5
    assert found[-1].text == "More of groups."
    assert search_passages(["rare_group"], every)[0].text.endswith("| `rare_group` | other |")
    assert found[0].guide_section.passage_texts[0].startswith("| group | what |")


def test_passages_of_equal_text_and_sections_of_equal_heading_are_told_apart() -> None:
    text = "# Page\n\n## Same\n\nEqual words.\n\nFirst.\n\n## Same\n\nEqual words.\n\nSecond.\n\nEqual words.\n"
    every = list(split_passages("page", text))
    assert [(passage.guide_section.place_on_page, passage.place_in_section) for passage in every] == [
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
        (2, 2),
    ]
    assert len(set(every)) == 5
    assert len(first_passage_of_sections(search_passages(["equal"], every))) == 2
    assert "First" not in passage_with_context(every[4], ["equal"], search_passages(["equal"], every), 16)


BESIDE = """# Page

## Heading

<!-- asked: how do I begin; first
steps -->

Type this.

- one <!-- asked: second thing -->
- two
- three
- four
- five <!-- asked: begin the fifth -->

| key | what |
|---|---|
| `a` | first <!-- asked: alpha of steps --> |
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("begin", "Type this."),
        ("the very first steps", "Type this."),
        ("begin with the fifth", "- five"),
        ("second thing", "- one"),
        ("alpha", "| `a` | first |"),
    ],
)
def test_a_passage_is_found_by_questions_beside_it_which_are_not_shown(question: str, answer: str) -> None:
    every = list(split_passages("page", BESIDE))
    assert search_passages(question.split(), every)[0].text.endswith(answer)
    assert not any("asked" in "".join(passage.guide_section.passage_texts) for passage in every)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("my validation set is as biased as training: what do I type", "val/shrunk_unbiased_log_loss"),
        ("trial 7 failed: why", "study logs NAME --trial N"),
        ("only 2 of 8 GPUs, two hours", "CUDA_VISIBLE_DEVICES=0,1"),
        ("pretrained", "study models prepare resnet50"),
        ("put it on our Slurm", "cluster/slurm/study.sbatch"),
        ("another process is running this study", "its driver is alive"),
        ("how do I limit memory", "search.concurrency"),
        ("class weights", "method.class_weights"),
        ("is my test split biased", "test/unbiased_accuracy"),
        ("exclude a column", "--without id,notes"),
        ("missing sensitive attribute", "bias_gaps: unknown"),
        ("what does shrunk_unbiased_log_loss mean", "log losses"),
        ("what is equalized odds", "Mean gap between bias classes"),
        ("early stopping off", "search.early_stopping.name=none"),
        ("my own network", "adding-things.md"),
        ("where are my results saved", "STUDY_HOME"),
        ("do not search the learning rate", "in the place of"),
        ("predict a number instead of a class", "there is none"),
        ("do I need bias labels", "--bias none"),
        ("four fifths rule", "demographic_parity"),
        ("use CmaEsSampler", "`tpe`"),
        ("keep it running as a systemd service", "--detach"),
        ("Abbrechen und später weitermachen", "Ctrl-C stops a study"),
        ("killed by the scheduler's time limit", "goes back into"),
        ("optuna dashboard", "study ui --optuna"),
    ],
)
def test_what_users_ask_is_answered_by_the_first_section(question: str, answer: str) -> None:
    assert answer in _first_section(question)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("my photos are in subfolders by species and there is no csv", "`labels: folders`"),
        ("some species have only 12 photos, is that enough", "Of a class of 12 samples"),
        ("how do I know whether the background is really what the model looks at", "`aligned_accuracy`"),
        ("can a photo show two species at once", "there is no multi-label"),
        ("how do I explain in my paper what was done, is there a methods text", "Settings and Provenance"),
        ("what is equalized odds and where do I see it in the report", '"Every metric"'),
        ("which ports must be open between nodes", "`--node-manager-port`"),
        ("how do I limit one user to 4 gpus on the shared cluster", "There is no quota"),
        ("what is the difference between fairkl and dcl", "DCL, without labels"),
        ("trials stay PENDING forever", "`study list` shows what else runs"),
        ("ModuleNotFoundError: No module named 'study'", "`.venv/bin/python`"),
        ('I become the error "database is locked", what to do', "brings the missing runs"),
    ],
)
def test_what_strangers_asked_is_answered_by_one_of_three_sections(question: str, answer: str) -> None:
    shown = guide_text(question.split())
    assert answer in shown
    assert len(re.findall(r"^## .* \((?:[a-z-]+)\): .", shown, re.MULTILINE)) == 3


def _first_section(question: str) -> str:
    """Return what is shown of the best section, with its heading."""
    return re.split(r"^(?=## )", guide_text(question.split()), flags=re.MULTILINE)[1]


LONG = """# Page

## Heading

Words before the commands.

```sh
study run commands
study two
study three
study four
study five
study six
```

Announced by these:

- one
- two

Announced by a long list:

- 1
- 2
- 3
- 4
- 5
"""


def test_what_is_longer_than_its_lines_is_cut_and_what_announces_is_shown_with_what_it_announces() -> None:
    every = list(split_passages("page", LONG))
    (commands,) = (one for one in every if one.text.startswith("```"))
    shown = passage_with_context(commands, ["commands"], search_passages(["commands"], every), 5)
    assert shown == "```sh\nstudy run commands\nstudy two\n...\n```"
    assert passage_with_context(every[0], ["words"], [every[0]], 2) == "Words before the commands."
    assert passage_with_context(every[2], ["announced"], [every[2]], 4) == "Announced by these:\n\n- one\n- two"
    assert passage_with_context(every[4], ["announced"], [every[4], every[-1]], 4).endswith("list:\n\n- 5")


@pytest.mark.slow
def test_each_metric_and_method_is_found_first_with_what_it_is() -> None:
    every = [passage for page, text in read_pages().items() for passage in split_passages(page, text)]
    asked = [name for name in (*METRICS, *method_names()) if "_" in name and name not in CELLS_BY_GROUP_METRIC]
    assert [name for name in asked if search_passages([f"val/{name}"], every)[0].leading_code != name] == []
    assert search_passages(["group_0_3_accuracy"], every)[0].leading_code == "group_Y_S_accuracy"


def test_a_misspelt_word_finds_what_the_right_one_finds() -> None:
    right, wrong = (guide_text(["how", "many", word]) for word in ("seeds", "seeeds"))
    assert wrong.partition("## ")[1:] == right.partition("## ")[1:]


def test_british_and_american_spellings_find_the_same() -> None:
    for british, american in (("the optimiser", "the optimizer"), ("grey pictures", "gray pictures")):
        assert guide_text(british.split()) == guide_text(american.split())


def test_every_word_that_an_everyday_word_stands_for_is_in_the_guide() -> None:
    (told,) = _count_stems([" ".join(read_pages().values())])
    (meant,) = _count_stems([" ".join(_read_everyday_words())])
    assert meant.keys() <= told.keys()


def test_a_word_that_no_page_has_names_the_pages() -> None:
    with pytest.raises(UserError, match=r"'qwxyzkj'.*Pages: .*tracking"):
        guide_text(["qwxyzkj"])


def test_words_that_the_guide_has_in_no_form_are_named_first() -> None:
    assert guide_text(["quantum", "models", "limiting"]).startswith("Not in this guide: quantum.")
    assert "Not in this guide" not in guide_text(["limited", "memories", "how"])


QUESTIONS = Path(__file__).parents[1] / "benchmarks" / "guide_questions.yaml"


def test_an_answer_fits_one_screen() -> None:
    questions = yaml.safe_load(QUESTIONS.read_text("utf-8"))
    longest = max((guide_text(question.split()).count("\n"), question) for question in list(questions)[::12])
    assert longest[0] <= 45, longest


def test_of_a_name_that_is_asked_for_its_row_is_shown_without_the_other_rows() -> None:
    first = _first_section("what does shrunk_unbiased_log_loss mean")
    assert "`shrunk_unbiased_log_loss`" in first
    assert "`worst_class_accuracy`" not in first
