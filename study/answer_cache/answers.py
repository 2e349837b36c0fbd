"""Answers that are kept between processes, so that asking a catalogue does not load what it is about.

They lie under the folder of all data, in one file for each state of the code: its name is a digest of the content of
this package's modules and of those of other distributions that declare entries, and of what is installed. The file is
JSON; one that is damaged, foreign or cannot be written counts as none. An answer is found by what the function read
of its arguments and the values that it read there; for other values it must be asked anew.
"""

import atexit
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from study import catalogue
from study.answer_cache import argument_reads, json_form
from study.answer_cache.argument_reads import Reading
from study.data.source import roots
from study.files.whole import write_whole

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

FOLDER = "answers"
MOST_FILES = 8
"""States of the code whose answers are kept: those written last."""

Node = dict[str, Any]
"""`{"answer": ...}`, or `{"read": ..., "then": {...}}`: the next reading, and by its value the node after it."""


class Answers:
    """The answers of one state of the code.

    Args:
        folders: where its file may be, the preferred ones first.
    """

    def __init__(self, folders: list[Path]) -> None:
        self._digest, self._folders = digest(), folders
        self._nodes, forms = self._read()
        self._shared = json_form.Shared(forms)
        self._new = False

    def find(self, question: str, arguments: tuple[Any, ...]) -> Any:
        """The answer; raises LookupError, ValueError or TypeError if there is none, or none that can be read."""
        node = self._nodes[question]
        while "read" in node:
            node = node["then"][_key(argument_reads.value_of(arguments, node["read"]))]
        answer = json_form.decode(node["answer"], self._shared)
        return answer.copy() if isinstance(answer, dict) else answer

    def keep(self, question: str, arguments: tuple[Any, ...], readings: list[Reading], answer: Any) -> None:
        """Keep an answer.

        Raises:
            NoJson: it cannot be.
        """
        end: Node = {"answer": json_form.encode(answer, self._shared)}
        node = self._nodes.setdefault(question, {})
        for reading in readings:
            if node.get("read") != reading or not isinstance(node.get("then"), dict):
                node.clear()
                node |= {"read": reading, "then": {}}
            node = node["then"].setdefault(_key(argument_reads.value_of(arguments, reading)), {})
        node.clear()
        node |= end
        if not self._new:
            self._new = True
            atexit.register(self.write)

    def write(self) -> None:
        """Write what is new in one step, unless the code has changed; a full or closed disk is not an error."""
        if self._digest != digest():
            return
        for folder in self._folders:
            with suppress(OSError, ValueError):
                folder.mkdir(parents=True, exist_ok=True)
                self._write(folder)
                return

    def _write(self, folder: Path) -> None:
        nodes, forms = self._read()
        content = [merged(nodes, self._nodes), forms | self._shared.forms]
        write_whole(folder / f"{self._digest}.json", json.dumps(content, separators=(",", ":")))
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in files[MOST_FILES:]:
            old.unlink(missing_ok=True)

    def _read(self) -> tuple[dict[str, Node], dict[str, Any]]:
        """The paths to answers, by question, and the forms that these share."""
        for folder in self._folders:
            with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
                path = folder / f"{self._digest}.json"
                nodes, forms = json.loads(path.read_text(encoding="utf-8"))
                if isinstance(forms, dict) and all(isinstance(node, dict) for node in nodes.values()):
                    with suppress(OSError):  # another user's file
                        os.utime(path)
                    return nodes, forms
        return {}, {}


def kept(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Keep the answers of a pure function of plain values, mappings and dataclasses, all given by position.

    A process that has PyTorch for another reason asks the function itself.
    """

    @wraps(function)
    def asked(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        if named or ("torch" in sys.modules and not _missed):
            return function(*arguments, **named)
        whole = [argument for argument in arguments if not argument_reads.is_watchable(argument)]
        question = f"{function.__module__}.{function.__name__} {_key(whole)}"
        with suppress(LookupError, ValueError, TypeError, AttributeError, RuntimeError):  # and where there is no home
            answer: Answer = _answers().find(question, arguments)
            return answer
        _missed.append(question)
        return _asked(function, question, arguments)

    return asked


_missed: list[str] = []
"""Questions that had no answer in this process: what it has loaded since, it has loaded for them."""


def _asked(function: Callable[..., Answer], question: str, arguments: tuple[Any, ...]) -> Answer:
    """Ask the function, and keep the answer if all that it depends on could be noted."""
    readings: list[Reading] = []

    def watch(place: int, argument: Any) -> Any:
        def note(how: str, name: str) -> None:
            if [place, how, name] not in readings:
                readings.append([place, how, name])

        return argument_reads.watched(argument, note) if argument_reads.is_watchable(argument) else argument

    try:
        answer = function(*(watch(place, argument) for place, argument in enumerate(arguments)))
        _answers().keep(question, arguments, readings, answer)
    except Exception:  # the plain call shows whether the arguments are wrong, or only watching them failed
        return function(*arguments)
    return answer


@cache
def _answers() -> Answers:
    return Answers([root / FOLDER for root in roots()])


def _key(value: Any) -> str:
    """A different text for each value; a string's, made without JSON, begins with a quote as no other's does."""
    if type(value) is str:
        return f'"{value}'
    return "absent" if value is argument_reads.ABSENT else json.dumps(value, sort_keys=True)


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two trees as one; where they disagree, the second counts."""
    both = dict(first)
    for key, node in second.items():
        before = both.get(key)
        if isinstance(before, dict) and isinstance(node, dict) and before.get("read") == node.get("read"):
            both[key] = merged(before, node)
        else:
            both[key] = node
    return both


def digest() -> str:
    """A digest of all that an answer can depend on besides its arguments."""
    state = hashlib.sha256(sys.version.encode())
    for line in _installed():
        state.update(line.encode(errors="surrogateescape"))
    for entry in catalogue.entries():
        dist = entry.dist
        state.update(f"{entry.group} {entry.name} {entry.value} {dist and (dist.name, dist.version)}\n".encode())
    for top in ["study", *sorted({entry.module.partition(".")[0] for entry in catalogue.entries()})]:
        for name, file in _files(top):
            state.update(f"{top} {name}\0".encode(errors="surrogateescape"))
            with suppress(OSError):
                state.update(file.read_bytes())
    return state.hexdigest()[:24]


def _installed() -> Iterator[str]:
    """The names of the installed distributions with their versions, as their folders have them."""
    for folder in sys.path:
        with suppress(OSError):
            yield from sorted(name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info")))


def _files(top: str) -> list[tuple[str, Path]]:
    """The source files of a package or module, by their names within it, wherever it lies; it is not loaded for it."""
    with suppress(ImportError, ValueError, AttributeError):
        spec = importlib.util.find_spec(top)
        places = list(spec.submodule_search_locations or ()) if spec else []
        if places:
            return sorted(
                (str(path.relative_to(place)), path) for place in places for path in Path(place).rglob("*.py")
            )
        return [(top, Path(spec.origin))] if spec and spec.origin else []
    return []
