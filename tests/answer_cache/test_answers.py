"""Answers that are kept: the catalogues' own, found again in another process, gone with what they rest on."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from helpers import ROOT
from typing_extensions import Doc

from study import data, methods, models
from study.answer_cache import answers, argument_reads, json_form
from study.answer_cache.answers import Answers, merged
from study.data import Facts
from study.knobs import Knob, knobs
from study.training import augment
from study.training.config import TrainOptions


def again(value: Any) -> Any:
    shared = json_form.Shared({})
    form = json.loads(json.dumps([json_form.encode(value, shared), shared.forms]))
    return json_form.decode(form[0], json_form.Shared(form[1]))


def every_knob() -> list[Knob]:
    found = [*knobs(TrainOptions), *(knob for name in data.names() for knob in data.data_knobs(name))]
    for section_knobs, names in ((models.model_knobs, models.names()), (methods.method_knobs, methods.names())):
        for name in names:
            there = section_knobs({"name": name})
            found += there.values()
            for key, value in ((key, value) for key, knob in there.items() for value in knob.names):
                found += section_knobs({"name": name, key: value}).values()
    return found


def test_every_knob_of_every_catalogue_comes_back_as_it_was() -> None:
    everyone = every_knob()
    assert len(everyone) > 1000
    for knob in everyone:
        assert again(knob) == knob
        assert again(knob).about == knob.about
        assert repr(again(knob).type) == repr(again(again(knob)).type)
        assert again(knob).searched == knob.searched


def test_needs_and_plain_values_come_back() -> None:
    for name in methods.names():
        section = {key: knob.default for key, knob in methods.method_knobs({"name": name}).items()} | {"name": name}
        assert again(methods.needs(section)) == methods.needs(section)
    for value in (None, True, 1, 1.0, float("inf"), "a", (1, "b"), [1, (2.0,)], {"a": (1,)}, Annotated[int, Doc("x")]):
        assert again(value) == value
        assert type(again(value)) is type(value)


def test_what_has_no_form_is_not_kept() -> None:
    for value in (object(), Annotated[int, object()], {1: 2}, frozenset()):
        with pytest.raises(json_form.NoJson):
            json_form.encode(value, json_form.Shared({}))


@dataclass(frozen=True)
class Shape:
    sides: int
    name: str

    @property
    def is_flat(self) -> bool:
        return self.sides < 3


def read_by(ask: Any, argument: Any) -> list[tuple[str, str]]:
    readings: list[tuple[str, str]] = []
    ask(argument_reads.watched(argument, lambda how, name: readings.append((how, name))))
    return readings


@pytest.mark.parametrize(
    ("ask", "readings"),
    [
        (lambda one: one["a"], [("key", "a")]),
        (lambda one: one.get("c", 1), [("key", "c")]),
        (lambda one: "a" in one, [("has", "a")]),
        (lambda one: list(one), [("keys", "")]),
        (lambda one: len(one), [("keys", "")]),
        (lambda one: {"a"} & one.keys(), [("keys", "")]),
    ],
)
def test_a_reading_of_a_mapping_is_noted(ask: Any, readings: list[tuple[str, str]]) -> None:
    assert list(dict.fromkeys(read_by(ask, {"a": 1, "b": 2}))) == readings


@pytest.mark.parametrize(
    "ask",
    [
        dict,
        json.dumps,
        str,
        lambda one: {**one},
        lambda one: one | {},
        lambda one: {} | one,
        lambda one: one.copy(),
        lambda one: list(one.items()),
        lambda one: list(one.values()),
        lambda one: one == {},
        lambda one: one != {},
        lambda one: one.pop("a"),
        lambda one: (lambda **given: given)(**one),
    ],
)
def test_what_may_read_all_of_a_mapping_is_noted_as_that(ask: Any) -> None:
    assert {("key", "a"), ("key", "b")} <= set(read_by(ask, {"a": 1, "b": 2}))


def test_a_reading_of_a_dataclass_is_noted_also_within_it() -> None:
    assert read_by(lambda one: one.name, Shape(2, "x")) == [("field", "name")]
    assert read_by(lambda one: one.is_flat, Shape(2, "x")) == [("field", "sides")]
    assert set(read_by(hash, Shape(2, "x"))) == {("field", "name"), ("field", "sides")}
    given = argument_reads.watched(Shape(2, "x"), lambda how, name: None)
    assert isinstance(given, Shape)
    assert given == Shape(2, "x")


def test_an_answer_is_found_by_what_was_read_alone(tmp_path: Path) -> None:
    kept = Answers([tmp_path])
    readings = [[0, "key", "name"], [0, "key", "depth"], [1, "field", "shape"]]
    facts = Facts(2, 2, (3, 8, 8), title="one")
    kept.keep("q", ({"name": "a", "width": 1}, facts), readings, ("kept", 1))
    other = Facts(5, None, (3, 8, 8), title="other")
    assert kept.find("q", ({"name": "a", "width": 2}, other)) == ("kept", 1)
    for section, data_facts in (({"name": "b"}, facts), ({"name": "a", "depth": None}, facts)):
        with pytest.raises(LookupError):
            kept.find("q", (section, data_facts))
    kept.write()
    assert Answers([tmp_path]).find("q", ({"name": "a"}, other)) == ("kept", 1)


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"[{}, []]", b'[{"q": 1}, {}]', b'[{"q": {}}, {}]', b"\xff"])
def test_a_file_that_is_damaged_or_foreign_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    kept = Answers([tmp_path])
    kept.keep("q", (), [], 1)
    kept.write()
    (file,) = tmp_path.glob("*.json")
    file.write_bytes(content)
    with pytest.raises((LookupError, ValueError, TypeError, AttributeError)):
        Answers([tmp_path]).find("q", ())
    kept.write()
    assert Answers([tmp_path]).find("q", ()) == 1


def test_where_nothing_can_be_written_the_next_folder_is_taken_or_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = Answers([tmp_path / "file" / "no", tmp_path / "yes"])
    kept.keep("q", (), [], 1)
    kept.write()
    assert Answers([tmp_path / "yes"]).find("q", ()) == 1
    Answers([tmp_path / "file" / "no"]).write()


def test_what_two_processes_found_is_kept_together(tmp_path: Path) -> None:
    one, other = Answers([tmp_path]), Answers([tmp_path])
    one.keep("q", ({"a": 1},), [[0, "key", "a"]], "one")
    other.keep("q", ({"a": 2},), [[0, "key", "a"]], "two")
    one.write()
    other.write()
    both = Answers([tmp_path])
    assert [both.find("q", ({"a": value},)) for value in (1, 2)] == ["one", "two"]
    assert merged({"q": {"answer": 1}}, {"q": {"answer": 2}}) == {"q": {"answer": 2}}


def test_old_files_go_and_the_newest_stay(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.json").write_text("")
    kept = Answers([tmp_path])
    kept.keep("q", (), [], 1)
    kept.write()
    assert len(list(tmp_path.iterdir())) == 8
    assert Answers([tmp_path]).find("q", ()) == 1


def test_files_that_are_asked_stay_and_all_users_of_a_folder_may_read_them(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        kept = Answers([tmp_path])
        kept.keep("q", (), [], 1)
        kept.write()
    finally:
        os.umask(umask)
    (file,) = tmp_path.glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o644
    os.utime(file, (0, 0))
    Answers([tmp_path])
    assert file.stat().st_mtime > 0


def test_the_same_code_elsewhere_has_the_same_answers(tmp_path: Path) -> None:
    code = "from study.answer_cache.answers import digest; import study; print(study.__file__, digest())"
    places, digests = set(), set()
    for root in (ROOT, tmp_path):
        if root == tmp_path:
            shutil.copytree(ROOT / "study", tmp_path / "study", ignore=shutil.ignore_patterns("__pycache__"))
        environment = {**os.environ, "PYTHONPATH": str(root)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
        place, digest = done.stdout.split()
        places.add(place)
        digests.add(digest)
    assert (len(places), len(digests)) == (2, 1)


def test_without_a_home_folder_the_catalogues_are_asked() -> None:
    code = "from study import methods; print(len(methods.names()))"
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "STUDY_DATA")}
    nobody = "import pwd; pwd.getpwuid = {}.__getitem__"  # a user without an entry, as in a container
    command = [sys.executable, "-c", f"{nobody}; {code}"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 20


ASK = """
import sys
from study import methods, models
from study.data import Facts
from study.training import augment
from study.training.config import TrainOptions
facts = Facts(2, 2, (3, 32, 32), title=sys.argv[1])
method = {"name": "sup_con", "temperature": float(sys.argv[2])}
print(sorted(methods.method_knobs(method)), methods.needs(method), methods.about("sup_con"))
print(models.unsuited({"name": "mlp"}, facts), methods.CATALOGUE.names() == methods.names())
print(augment.output_shape("simclr", (3, 32, 32), TrainOptions(crop_size=24, learning_rate=float(sys.argv[2]))))
print("torch" in sys.modules, file=sys.stderr)
"""


def test_another_process_finds_the_answers_and_other_numbers_are_no_other_question(tmp_path: Path) -> None:
    def asked(*given: str) -> tuple[str, str]:
        environment = {"STUDY_DATA": str(tmp_path), "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", ASK, *given], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr.strip()

    first = asked("one", "0.1")
    assert first[1] == "True"
    assert asked("other", "0.2") == (first[0], "False")


def test_a_process_that_has_torch_asks_the_catalogues_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch  # noqa: F401

    def none_is_looked_for() -> Answers:
        raise AssertionError("kept answers were asked")

    monkeypatch.setattr(answers, "_answers", none_is_looked_for)
    monkeypatch.setattr(answers, "_missed", [])
    assert "temperature" in methods.method_knobs({"name": "sup_con"})
    assert augment.is_random("simclr")
    monkeypatch.delitem(sys.modules, "torch")
    with pytest.raises(AssertionError, match="were asked"):
        methods.method_knobs({"name": "sup_con"})
