"""YAML with places: where each key stands, overrides, profiles, and files that are no study file."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.errors import UserError
from study.knobs import Section
from study.spec.yaml_document import (
    YamlDocument,
    apply_overrides,
    apply_profile,
    dump_yaml,
    dump_yaml_flow,
    dump_yaml_folded,
    parse_study_yaml,
    read_study_file,
)

TEXT = """\
name: one
train:
  epochs: 3
search:
  space:
    method.alpha: {low: 0.1,
                   high: 1.0}
  enqueue:
    - method.alpha: 0.5
    - method.alpha: 0.7
profiles:
  fast: {train.epochs: 1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def refused(path: Path, content: str | bytes) -> str:
    """The message with which a file of this content is refused."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as caught:
        read_study_file(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("name",), 1),
        (("search", "space", "method.alpha"), 6),
        (("search", "space", "method.alpha", "high"), 7),
        (("search", "enqueue", "1", "method.alpha"), 10),
        (("train", "not_there"), 2),
    ],
)
def test_each_key_knows_its_line(file: Path, key: tuple[str, ...], line: int) -> None:
    assert read_study_file(file).key_location(key) == f"{file}:{line}"


def test_an_emoji_is_read_as_json_writes_it_and_half_of_one_is_refused(file: Path) -> None:
    file.write_text(json.dumps({"name": "one", "data": {"positive": "\U0001f426", "\U0001f426": ["\U0001f426"]}}))
    assert read_study_file(file).values["data"] == {"positive": "\U0001f426", "\U0001f426": ["\U0001f426"]}
    for half in (r'data: {positive: "a\ud83d"}', r'data: {"a\ud83d": 1}'):
        assert r":2: not valid YAML: half of a character, as in 'a\ud83d'" in refused(file, f"name: one\n{half}\n")
    with pytest.raises(UserError, match=r"--set data.positive=.*: the value is not valid YAML: half of a character"):
        apply_overrides(YamlDocument("x", {}), [r'data.positive="\udce9"'])


@pytest.mark.parametrize(
    "text", ["??", "?x", "? x", ":x", ":", "a\x85b", "\u2028", "a\nb", "\n", "\t", "x" * 200 + "? y"]
)
@pytest.mark.parametrize("write", [dump_yaml, dump_yaml_flow, dump_yaml_folded])
def test_every_text_is_read_as_it_was_written(file: Path, text: str, write: Callable[[Section], str]) -> None:
    """As `missing_marks: ["??"]`, and names of columns."""
    values = {"a": text, "b": [text, "c"], "d": {text: [1], "e": {"f": text}}}
    file.write_text(write(values), encoding="utf-8")
    assert read_study_file(file).values == values


def test_set_overrides_one_key_and_its_place(file: Path) -> None:
    document = read_study_file(file)
    apply_overrides(
        document,
        ["search.space.method.alpha.low=0.2", "search.baseline.method.alpha=1", "train.epochs=7", "data.name=x"],
    )
    space = document.values["search"]["space"]
    assert space == {"method.alpha": {"low": 0.2, "high": 1.0}}
    assert document.values["search"]["baseline"] == {"method.alpha": 1}
    assert document.values["train"] == {"epochs": 7}
    assert document.values["data"] == {"name": "x"}
    assert document.key_location(("train", "epochs")) == "--set train.epochs=7"
    assert (
        document.key_location(("search", "space", "method.alpha", "low")) == "--set search.space.method.alpha.low=0.2"
    )
    assert document.key_location(("search", "space", "method.alpha", "high")) == f"{file}:7"


def test_a_replaced_section_forgets_the_lines_of_its_keys(file: Path) -> None:
    document = read_study_file(file)
    apply_overrides(document, ["search.space={method.beta: {low: 0}}"])
    assert document.values["search"]["space"] == {"method.beta": {"low": 0}}
    assert (
        document.key_location(("search", "space", "method.alpha", "high"))
        == "--set search.space={method.beta: {low: 0}}"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("1e-5", 1e-5),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ("", None),
        ("a=b", "a=b"),
        ("no", "no"),
        # quotes that a shell took away
        (",", ","),
        (";", ";"),
        ("|", "|"),
        ("-", "-"),
        ("\t", "\t"),
        (r"\t", "\t"),
        ("~", None),
        ("-5", -5),
        ("[?]", ["?"]),
        ("[-, ?, 9, n/a]", ["-", "?", 9, "n/a"]),
        ("[#NULL!, *]", ["#NULL!", "*"]),
        ('["?", a]', ["?", "a"]),
        ("[-1, ~]", [-1, None]),
    ],
)
def test_a_value_is_read_as_yaml_1_2(file: Path, text: str, value: object) -> None:
    document = read_study_file(file)
    apply_overrides(document, [f"train.x={text}"])
    assert document.values["train"]["x"] == value
    assert type(document.values["train"]["x"]) is type(value)


@pytest.mark.parametrize(("text", "value"), [('","', ","), ("[a: 1]", [{"a": 1}]), ("=", "="), ("a=b", "a=b")])
def test_a_key_can_be_set_as_it_stands_in_a_file(file: Path, text: str, value: object) -> None:
    document = read_study_file(file)
    apply_overrides(document, [f"train.x: {text}"])
    assert document.values["train"]["x"] == value


@pytest.mark.parametrize("assignment", ["train.epochs", "=3", "train..epochs=3", ".x=3", "x.=3"])
def test_set_needs_key_and_value(file: Path, assignment: str) -> None:
    with pytest.raises(UserError, match=r"--set .*not of the form key=value"):
        apply_overrides(read_study_file(file), [assignment])


def test_set_through_a_value_says_what_is_there(file: Path) -> None:
    with pytest.raises(UserError, match=r"--set name\.x=3: name: is 'one', it has no key 'x'"):
        apply_overrides(read_study_file(file), ["name.x=3"])


@pytest.mark.parametrize(
    "text", ["[1", "{a: b", "2001-99-99", "!!int x", "&a [*a]", "9" * 5000, "[" * 400 + "]" * 400, "\0"]
)
def test_a_value_that_is_no_yaml_is_refused(file: Path, text: str) -> None:
    with pytest.raises(UserError, match="not valid YAML"):
        apply_overrides(read_study_file(file), [f"train.epochs={text}"])


def test_profile_is_applied_and_leaves_the_document(file: Path) -> None:
    document = read_study_file(file)
    apply_profile(document, "fast")
    assert document.values["train"] == {"epochs": 1}
    assert "profiles" not in document.values
    assert document.key_location(("train", "epochs")) == f"{file}:12"


def test_unknown_profile_names_those_there_are(file: Path) -> None:
    with pytest.raises(UserError, match=r"--profile slow: not in .*one\.yaml\. Profiles there: fast"):
        apply_profile(read_study_file(file), "slow")
    with pytest.raises(UserError, match="Profiles there: none"):
        apply_profile(YamlDocument("f", {}), "slow")


@pytest.mark.parametrize("profiles", ["[a]", "{a: 3}", "text"])
def test_profiles_of_another_form_are_refused(tmp_path: Path, profiles: str) -> None:
    (tmp_path / "p.yaml").write_text(f"name: x\nprofiles: {profiles}\n")
    with pytest.raises(UserError, match=r"p\.yaml:2: profiles: a mapping of names"):
        apply_profile(read_study_file(tmp_path / "p.yaml"), None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "a study file is a mapping of sections, this is empty"),
        ("# nothing yet\n---\n", "a study file is a mapping of sections, this is empty"),
        ("just words\n", "a study file is a mapping"),
        ("name: x\nname: y\n", ':2: not valid YAML: found duplicate key "name"'),
        ("a: 1\n\tb: 2\n", ":2: not valid YAML"),
        ("a: 1\n---\na: 2\n", "not valid YAML: but found another document"),
        ("a: *b\n", ":1: not valid YAML: found undefined alias"),
        ("a: 1\nb: {c: 1\nd: {e: 1}\n", "which begins in line 2"),
        ("a: 1\nb: 1\0\n", ":2: not valid YAML: the character U+0000 is not allowed"),
        (b"a: 1\nb: \xe9\n", ":2: is not in UTF-8, but perhaps in Latin-1. Save it as UTF-8"),
        ("a: 1\n".encode("utf-16"), "is in UTF-16 or UTF-32. Save it as UTF-8"),
        ("a: 1\n".encode("utf-16-be"), "is in UTF-16 or UTF-32. Save it as UTF-8"),
        ("a: 1\n".encode("utf-32"), "is in UTF-16 or UTF-32. Save it as UTF-8"),
        ("a: 1\nb: 2001-99-99\n", ":2: not valid YAML: a value that cannot be read: month must be in 1..12"),
        ("a: 1\nb: !!omap x\n", ":2: not valid YAML: a value that cannot be read"),
        ("a: 1\n? - - 1\n: 2\n", "not valid YAML: a key or value that cannot be read"),
        ("a: 1\nb: " + "9" * 5000, ":2: not valid YAML"),
    ],
)
def test_what_is_no_study_file_is_refused_with_its_line(tmp_path: Path, content: str | bytes, words: str) -> None:
    assert words in refused(tmp_path / "bad.yaml", content)


def test_no_object_is_made_from_a_tag(tmp_path: Path) -> None:
    marker = tmp_path / "made"
    (tmp_path / "tag.yaml").write_text(f"a: !!python/object/apply:os.mkdir ['{marker}']\n")
    read_study_file(tmp_path / "tag.yaml")
    assert not marker.exists()


def bomb(depth: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, depth)]
    return "\n".join(lines)


@pytest.mark.timeout(30)
def test_aliases_that_multiply_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    assert "more than" in refused(tmp_path / "bomb.yaml", bomb(12))


@pytest.mark.parametrize("text", ["a: &a\n  - *a\n", "a: &a\n  b: *a\n", "a: &a {b: [*a]}\n"])
def test_a_value_inside_itself_ends(tmp_path: Path, text: str) -> None:
    (tmp_path / "self.yaml").write_text(text)
    assert json.dumps(read_study_file(tmp_path / "self.yaml").values)


def test_anchors_and_merge_keys_are_plain_values(tmp_path: Path) -> None:
    path = tmp_path / "anchors.yaml"
    path.write_text("a: &a {x: &x true, y: 1.5}\nb:\n  <<: *a\n  y: 2\nc: {<<: *a}\nd: *x\n")
    document = read_study_file(path)
    assert document.values == {
        "a": {"x": True, "y": 1.5},
        "b": {"x": True, "y": 2},
        "c": {"x": True, "y": 1.5},
        "d": True,
    }
    assert document.values["a"]["x"] is document.values["d"] is True
    assert document.key_location(("b", "x")) == f"{path}:2"
    assert document.key_location(("b", "y")) == f"{path}:4"


def test_keys_for_anchors_are_no_sections(tmp_path: Path) -> None:
    path = tmp_path / "aside.yaml"
    path.write_text("x-adam: &adam {optimizer: adam}\ntrain: {<<: *adam, epochs: 2}\n")
    assert read_study_file(path).values == {"train": {"optimizer": "adam", "epochs": 2}}


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfname: x\n")
    assert read_study_file(tmp_path / "bom.yaml").values == {"name": "x"}


TEXTS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=8)
KEYS = st.from_regex(r"[a-z][a-z.0-9]{0,6}", fullmatch=True)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(KEYS, PLAIN, max_size=4))
def test_what_is_dumped_is_read_back(values: dict[str, object]) -> None:
    document = YamlDocument("memory", {})
    apply_overrides(document, [f"all={dump_yaml(values)}"])
    assert document.values["all"] == values


def test_a_fault_of_a_section_names_what_was_set_in_it() -> None:
    document = parse_study_yaml("data: {name: table, bias: site}\ntrain: {epochs: 3}\n", "trees.yaml")
    apply_overrides(document, ["data.bias=place", "train.epochs=2", "data.folds=3"])
    assert document.key_location(("data",)) == "trees.yaml:1 with --set data.bias=place and --set data.folds=3"
    assert document.key_location(("data", "name")) == "trees.yaml:1"
    assert document.key_location(("data", "bias")) == "--set data.bias=place"
