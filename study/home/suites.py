"""What the home remembers of a suite: its labels, and the tables that were made of its studies. The studies themselves
are ordinary ones."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.files.output import writing
from study.files.whole import write_whole
from study.home import format as home_format
from study.home.folder import ANOTHER_HOME, Home
from study.spec.document import dump, read

TABLE = "table"


@dataclass(frozen=True)
class SuiteFolder:
    """The files of one suite, in the home's folder of suites."""

    path: Path

    @property
    def file(self) -> Path:
        """What it consists of."""
        return self.path / "suite.yaml"

    def table(self, ending: str) -> Path:
        """Its tables as Markdown, LaTeX, CSV or JSON, by the file's ending."""
        return self.path / f"{TABLE}.{ending}"

    def known(self) -> dict[str, Any] | None:
        """What it consisted of when it last ran; None if it has not begun.

        Raises:
            UserError: the file is damaged.
        """
        return read(self.file).values if self.file.is_file() else None

    def remember(self, home: Home, document: dict[str, Any]) -> None:
        """Write what it consists of.

        Raises:
            UserError: the home cannot be written, or a newer version of this package made it.
        """
        home_format.check(home.path)
        with writing(self.path, ANOTHER_HOME):
            self.path.mkdir(parents=True, exist_ok=True)
            home_format.write(home.path)
            write_whole(self.file, dump(document))


def suite_folder(home: Home, name: str) -> SuiteFolder:
    """The folder of a suite, which need not exist."""
    return SuiteFolder(home.suites / name)
