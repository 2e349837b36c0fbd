"""`--set` of `study init`: keys that go into the drafted file, which keeps its comments."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML

from study import data
from study.errors import UserError, nearest
from study.spec.checks import fault
from study.spec.document import Document, override, parse
from study.spec.load import resolve

WIDTH = 4096
"""Characters of a line: none is broken."""


class Assignments:
    """Overrides `section.key=value`, each read as YAML.

    Args:
        texts: as on the command line.

    Raises:
        UserError: one is not of that form.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)
        override(Document("--set", {}), self._texts)

    def data(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """A `data` section with those that are its own: what else is drafted depends on it.

        Raises:
            UserError: one is no key of this data set, or cannot have this value.
        """
        document = Document("--set", {"data": dict(section)})
        override(document, [text for text in self._texts if text.startswith("data.")])
        values = dict(document.values["data"])
        knobs = {knob.key: knob for knob in data.data_knobs(section["name"])}
        for key in sorted(values.keys() - section.keys()):
            if key not in knobs:
                raise UserError(f"--set data.{key}: unknown key. {nearest(key, knobs)}Allowed: {', '.join(knobs)}")
            if why := fault(knobs[key], values[key]):
                raise UserError(f"--set data.{key}: {why}")
        return values

    def applied(self, text: str, file: str) -> str:
        """The text of a study file with the others, checked.

        Args:
            file: its future name, for messages.

        Raises:
            UserError: the file would not be a study.
        """
        others = [text for text in self._texts if not text.startswith("data.")]
        if not others:
            return text
        yaml = YAML()
        yaml.width = WIDTH
        tree = yaml.load(text)
        override(Document(file, tree), others)
        stream = io.StringIO()
        yaml.dump(tree, stream)
        document = parse(stream.getvalue(), file)
        document.values.pop("profiles", None)
        resolve(document)
        return stream.getvalue()
