"""A YAML document that remembers where each key stands, with overrides applied."""

import codecs
import copy
import io
import itertools
import os
import re
import shlex
import stat
import string
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import Node, ScalarNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.representer import SafeRepresenter
from ruamel.yaml.scalarbool import ScalarBoolean

from study.errors import UserError, closest_path, closest_spellings, did_you_mean, did_you_mean_path
from study.knobs import Section, Value
from study.text import is_utf8, list_few_names, shorten_text


def shipped_studies_folder() -> Path:
    """Return the folder of the project's study files: in a checkout beside the package, in a wheel inside it."""
    package = Path(str(files("study")))
    return next(path for path in (package / "search_spaces", package.parent / "search_spaces") if path.is_dir())


def shipped_study_files() -> dict[str, Path]:
    """Return the study files that come with the project, by name."""
    return {path.stem: path for path in sorted(shipped_studies_folder().glob("*.yaml"))}


STUDY_FILE_SUFFIXES = (".yaml", ".yml")


def find_study_file(spec: str) -> Path:
    """Return the file that a user means by a name or a path.

    Raises:
        UserError: there is none.
    """
    path = Path(spec)
    if path.suffix == ".jsonl" and os.path.isfile(spec):
        beside = path.with_name("best.yaml")
        meant = f" Did you mean {shlex.quote(str(beside))}?" if beside.is_file() else ""
        raise UserError(f"{spec}: a ledger, no study file.{meant}")
    if path.suffix in STUDY_FILE_SUFFIXES or len(path.parts) > 1:
        # False also for an impossible path: too long, a null in it
        if os.path.isfile(spec) or pipe_or_terminal_identity(path):
            return path
        missing = f"no such file. {did_you_mean_path(path, STUDY_FILE_SUFFIXES)}".rstrip(". ")
        raise UserError(f"{spec}: {_folder_given_message(path) if os.path.isdir(spec) else missing}")
    names = shipped_study_files()
    if spec in names:
        return names[spec]
    exported = _study_home_path() / spec / "best.yaml"
    best = f"{shlex.quote(str(exported))}, which it exported" if os.path.isfile(exported) else None
    if own := next((name for name in (f"{spec}.yaml", f"{spec}.yml") if os.path.isfile(name)), None):
        or_best = f", or of the study {best}" if best else ""
        raise UserError(f"{spec}: no study file of that name is shipped. Did you mean {shlex.quote(own)}{or_best}?")
    if best:
        raise UserError(f"{spec}: a study, no study file. Did you mean {best}?")
    if spec and os.path.isdir(spec):
        raise UserError(f"{spec}: {_folder_given_message(path)}")
    raise UserError(
        f"{spec}: no study file of that name. {did_you_mean(spec, names) or _did_you_mean_own_study(spec)}"
        "For a file of your own give its path, ending in .yaml. Shipped ones: study spaces"
    )


def _did_you_mean_own_study(word: str) -> str:
    """Return which study file beside, or exported file of a study of the home, is meant."""
    exported = {file.parent.name: file for file in _study_home_path().glob("*/best.yaml")}
    near = [f"{shlex.quote(str(exported[study]))}, of the study {study}" for study in closest_spellings(word, exported)]
    near += [shlex.quote(str(file))] if (file := closest_path(Path(word), STUDY_FILE_SUFFIXES)) else []
    return f"Did you mean {', or '.join(near)}? " if near else ""


def _study_home_path() -> Path:
    return Path(os.environ.get("STUDY_HOME") or "studies")


def _folder_given_message(folder: Path) -> str:
    there = list_few_names(sorted(str(file) for kind in ("*.yaml", "*.yml") for file in folder.glob(kind)))
    return f"a folder, no study file. {f'In it: {there}' if there else 'None is in it'}"


MAX_PIPE_BYTES = 2**24
"""Bytes that are read of a pipe at most."""


def pipe_or_terminal_identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a pipe or terminal, whose text can be read once, as `/dev/stdin`; None: it is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    kinds = (stat.S_ISFIFO, stat.S_ISCHR, stat.S_ISSOCK)
    return (found.st_dev, found.st_ino) if any(kind(found.st_mode) for kind in kinds) else None


@lru_cache(maxsize=64)
def _read_pipe_once(path: Path, whose: tuple[int, int]) -> bytes:
    """Return the content of a pipe; it is kept, as a study reads its file several times."""
    with path.open("rb") as file:
        return file.read(MAX_PIPE_BYTES)


KeyPath = tuple[str, ...]

IGNORED_KEY_PREFIX = "x-"
"""Prefix of top-level keys that only hold YAML anchors."""

MAX_DOCUMENT_VALUES, MAX_DOCUMENT_DEPTH = 20_000, 30
"""Most values that a study file may have, and most levels of nesting."""


@dataclass
class YamlDocument:
    """Nested plain values, and for each key the place that it came from (`FILE:LINE` or `--set`).

    Attributes:
        dotted_keys: the keys that were given as `section.key`, by `--set` or a profile.
    """

    source: str
    values: dict[str, Value]
    locations: dict[KeyPath, str] = field(default_factory=dict)
    dotted_keys: set[KeyPath] = field(default_factory=set)

    def key_location(self, key: KeyPath) -> str:
        """Return where a key stands, with what `--set` changed below it; for a missing one, its nearest parent."""
        while key and key not in self.locations:
            key = key[:-1]
        place = self.locations.get(key, self.source)
        below = [at for path, at in self.locations.items() if path in self.dotted_keys and path[:-1] == key != ()]
        return f"{place} with {' and '.join(below)}" if below else place

    def override_key(self, dotted: str, value: Value, place: str) -> None:
        """Override one key, given as `section.key`.

        Raises:
            UserError: the path has an empty part, or leads through a value that is not a section.
        """
        path = split_dotted_key(dotted)
        if not all(path):
            raise UserError(f"{place}: {shorten_text(repr(dotted))}: is no key; allowed: section.key")
        at = self.values
        for depth, section in enumerate(path[:-1], start=1):
            if section not in at:
                self.locations.setdefault(path[:depth], place)
            inner = at.setdefault(section, {})
            if not isinstance(inner, dict):
                above, below = shorten_text(".".join(path[:depth])), shorten_text(".".join(path[depth:]))
                raise UserError(f"{place}: {above}: is {shorten_text(repr(inner))}, it has no key {below!r}")
            at = inner
        at[path[-1]] = value
        self.locations = {key: where for key, where in self.locations.items() if key[: len(path)] != path}
        self.locations[path] = place
        self.dotted_keys.add(path)


def mapping_or_empty(value: Value) -> Section:
    """Return a value of a document as the mapping that it should be; an empty one where it is something else."""
    return value if isinstance(value, dict) else {}


def split_dotted_key(dotted: str) -> KeyPath:
    """Split a dotted key into its path; keys below `search.space`, `search.baseline` and `when` have dots.

    >>> split_dotted_key("search.space.method.alpha.low")
    ('search', 'space', 'method.alpha', 'low')
    """
    parts = dotted.split(".")
    if parts[:2] in (["search", "space"], ["search", "baseline"]) and len(parts) > 3:
        below = [*parts[4:5], ".".join(parts[5:])] if parts[4:5] == ["when"] and len(parts) > 5 else parts[4:]
        return (*parts[:2], ".".join(parts[2:4]), *below)
    return tuple(parts)


def read_study_file(path: Path) -> YamlDocument:
    """Read a study file: YAML 1.2, data only, a repeated key is an error.

    Raises:
        UserError: not readable, not YAML, or not a mapping.
    """
    try:
        whose = pipe_or_terminal_identity(path)
        content = _read_pipe_once(path, whose) if whose else path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or b"\0" in content[:4]:
        raise UserError(f"{path}: is in UTF-16 or UTF-32. Save it as UTF-8")
    try:
        return parse_study_yaml(content.decode(), str(path))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: is not in UTF-8, but perhaps in Latin-1. Save it as UTF-8") from None


def parse_study_yaml(text: str, source: str) -> YamlDocument:
    """Parse a study file's text, without its keys `x-NAME`: they hold anchors and mean nothing themselves.

    Args:
        source: what messages call it.

    Raises:
        UserError: not YAML, or not a mapping.
    """
    try:
        values, lines = _load_yaml(text)
    except _YamlError as error:
        place = source if error.line is None else f"{source}:{error.line}"
        raise UserError(f"{place}: not valid YAML: {error}") from None
    if lines is None:
        given = "this is empty" if values is None else f"this is {type(values).__name__}"
        raise UserError(f"{source}: a study file is a mapping of sections, {given}")
    values = {key: value for key, value in mapping_or_empty(values).items() if not key.startswith(IGNORED_KEY_PREFIX)}
    return YamlDocument(source, copy.deepcopy(values), {key: f"{source}:{line}" for key, line in lines.items()})


def apply_overrides(document: YamlDocument, assignments: Iterable[str]) -> None:
    """Apply `--set key=value` overrides; a value is read as YAML.

    Raises:
        UserError: not of that form.
    """
    for assignment in assignments:
        document.override_key(*parse_assignment(assignment))


def parse_assignment(assignment: str, option: str = "--set") -> tuple[str, Value, str]:
    """Return key, value and place of one `key=value`, or `key: value` as in a file.

    Args:
        option: what messages call it.

    Raises:
        UserError: not of that form.
    """
    as_in_file = COLON_ASSIGNMENT_PATTERN.fullmatch(assignment)
    key, equals, text = as_in_file.groups() if as_in_file else assignment.partition("=")
    place = f"{option} {shorten_text(assignment)}"
    if not equals or not key or not all(key.split(".")):
        raise UserError(f"{place}: not of the form key=value, as in {option} train.epochs=10")
    try:
        return key, _parse_override_value(text), place
    except _YamlError as error:
        raise UserError(f"{place}: the value is not valid YAML: {error}") from None


COLON_ASSIGNMENT_PATTERN = re.compile(r"([\w.-]+)(:) +(.*)", re.DOTALL)

PLAIN_YAML_SIGNS = frozenset(string.punctuation + "\t ") - {"~"}
"""Signs that stand for themselves as a value: YAML reads none of them alone as anything else, except `~`."""

LIST_OF_WORDS_PATTERN = re.compile(r"\[[^\[\]{}'\"\0]*\]")


def _parse_override_value(text: str) -> Value:
    """Read a text as YAML, also where a shell took the quotes away that a sign needs: `,`, `[?, #NULL!]`."""
    if text in PLAIN_YAML_SIGNS or text == r"\t":  # a tab as messages quote it
        return text.replace(r"\t", "\t")
    words = [word.strip() for word in text[1:-1].split(",")] if LIST_OF_WORDS_PATTERN.fullmatch(text) else []
    if any(map(_is_yaml_special_text, words)):
        return [word if _is_yaml_special_text(word) else _parse_override_value(word) for word in words]
    return copy.deepcopy(_load_yaml(text)[0])


def _is_yaml_special_text(word: str) -> bool:
    return bool(word) and ({*word} <= PLAIN_YAML_SIGNS or word[0] in "#*%@&!|>`")


def apply_profile(document: YamlDocument, profile: str | None) -> None:
    """Apply a block of overrides named in the file, and take all such blocks out of the document.

    Raises:
        UserError: there is no such profile.
    """
    profiles = document.values.pop("profiles", None) or {}
    if not isinstance(profiles, dict) or not all(isinstance(block, dict) for block in profiles.values()):
        at = document.key_location(("profiles",))
        raise UserError(f"{at}: profiles: a mapping of names to blocks of key: value is needed")
    if profile is None:
        return
    if profile not in profiles:
        there = ", ".join(profiles) or "none"
        raise UserError(f"--profile {profile}: not in {document.source}. Profiles there: {there}")
    for key, value in mapping_or_empty(profiles[profile]).items():
        document.override_key(key, value, document.key_location(("profiles", profile, key)))


def dump_yaml(values: Section) -> str:
    """Return nested plain values as YAML text, one section per block."""
    return _to_yaml(values, is_flow=False)


def dump_yaml_folded(values: Section, blocks: Container[str] = ()) -> str:
    """Return nested plain values as YAML text in few lines: a value of several is in flow style.

    Args:
        blocks: keys whose values are written as this function writes `values`, each of theirs in lines of its own.
    """
    lines = []
    for key, value in values.items():
        if key in blocks and isinstance(value, Mapping):
            lines += [f"{key}:", *(f"  {line}" for line in dump_yaml_folded(value).splitlines())]
        else:
            first, *more = dump_yaml_flow({key: value}, FOLDED_WIDTH).removeprefix("{").removesuffix("}").split("\n")
            lines += [first, *(f"  {line}" for line in more)]
    return "".join(f"{line}\n" for line in lines)


FOLDED_WIDTH, UNBROKEN_WIDTH = 100, 4096
"""Characters after which a line of a folded value ends, and so many that none is broken."""


def dump_yaml_flow(values: Section, width: int = UNBROKEN_WIDTH) -> str:
    """Return nested plain values as YAML text in flow style, `{key: value}`, with lines of about `width` characters."""
    return _to_yaml(values, is_flow=True, width=width).strip()


@contextmanager
def edit_yaml(text: str, width: int = UNBROKEN_WIDTH) -> Iterator[tuple[CommentedMap, io.StringIO]]:
    """Yield the mapping of a YAML text, to be changed, and a stream that has the changed text after the block.

    Comments are kept.
    """
    yaml, stream = YAML(), io.StringIO()
    yaml.width = width
    tree = yaml.load(text)
    yield tree, stream
    yaml.dump(tree, stream)


class _YamlRepresenter(SafeRepresenter):
    """Quotes the texts that are read as something else where nothing is around them: `?x`, `:x`, a line separator."""

    def represent_text(self, text: str) -> ScalarNode:
        is_risky = text.startswith(("?", ":")) or not text.isprintable()
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"' if is_risky else None)


_YamlRepresenter.add_representer(str, _YamlRepresenter.represent_text)


def _to_yaml(values: Section, *, is_flow: bool, width: int | None = None) -> str:
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _YamlRepresenter
    yaml.default_flow_style, yaml.allow_unicode = is_flow, True
    if width is not None:
        yaml.width = width
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = io.StringIO()
    yaml.dump(dict(values), stream)
    return stream.getvalue()


class _YamlError(Exception):
    """A text that is not YAML, or is YAML that a study file may not be."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


class _YamlConstructor(RoundTripConstructor):
    """Names the line of a value that cannot be read: a date in month 13, a number without digits, half a character.

    JSON writes a character beyond 16 bits as two halves, which are put together here.
    """

    def construct_object(self, node: Node, deep: bool = False) -> object:
        if isinstance(node, ScalarNode) and not is_utf8(node.value):
            try:
                node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                problem = f"half of a character, as in {shorten_text(repr(node.value))}"
                raise _YamlError(problem, node.start_mark.line + 1) from None
        try:
            return super().construct_object(node, deep)
        except (_YamlError, YAMLError, RecursionError):
            raise
        except Exception as error:  # whatever the reading of a date or number stumbles over
            raise _YamlError(f"a value that cannot be read: {error}", node.start_mark.line + 1) from None


@lru_cache(maxsize=64)
def _load_yaml(text: str) -> tuple[Value, dict[KeyPath, int] | None]:
    """Return the plain values of a YAML text, not to be changed, and the line of each key; None: it is no mapping.

    A study reads its file several times, and each costs some 16 ms.
    """
    try:
        yaml = YAML(typ="rt", pure=True)
        yaml.Constructor = _YamlConstructor
        tree = yaml.load(text)
    except MarkedYAMLError as error:
        mark, begun = error.problem_mark, error.context_mark
        since = f" ({error.context}, which begins in line {begun.line + 1})" if begun else ""
        raise _YamlError(f"{error.problem}{since}", mark.line + 1 if mark else 1) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _YamlError(f"the character U+{ord(text[error.position]):04X} is not allowed", line) from None
    except RecursionError:
        raise _YamlError("nested too deeply") from None
    except (_YamlError, YAMLError) as error:
        raise error if isinstance(error, _YamlError) else _YamlError(str(error)) from None
    except Exception as error:  # of the parser itself, as for a key that is a list of lists
        raise _YamlError(f"a key or value that cannot be read: {error}") from None
    values = _to_plain_values(tree, itertools.count(1))
    return values, dict(_key_lines(tree, ())) if isinstance(tree, CommentedMap) else None


def _to_plain_values(node: object, count: Iterator[int], above: tuple[int, ...] = ()) -> Value:
    """Return plain values with aliases written out: without limits, a few lines could fill the memory."""
    if next(count) > MAX_DOCUMENT_VALUES:
        raise _YamlError(f"more than {MAX_DOCUMENT_VALUES} values, those of aliases counted each time")
    if id(node) in above:
        raise _YamlError("a value holds itself")
    if len(above) > MAX_DOCUMENT_DEPTH:
        raise _YamlError("nested too deeply")
    if isinstance(node, dict):
        return {str(key): _to_plain_values(value, count, (*above, id(node))) for key, value in node.items()}
    if isinstance(node, list):
        return [_to_plain_values(value, count, (*above, id(node))) for value in node]
    if isinstance(node, ScalarBoolean):
        return bool(node)
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return None if node is None else str(node)


def _key_lines(node: object, key: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if isinstance(node, CommentedMap):
        places = node.lc.data or {}
        for name, value in node.items():
            if name in places:  # a key merged by `<<` has no line of its own
                yield (*key, str(name)), node.lc.key(name)[0] + 1
            yield from _key_lines(value, (*key, str(name)))
    elif isinstance(node, CommentedSeq):
        for index, value in enumerate(node):
            yield from _key_lines(value, (*key, str(index)))
