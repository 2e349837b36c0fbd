"""A suite file that stands for itself, to be sent elsewhere."""

from dataclasses import dataclass

from study.files import digest
from study.spec.document import dump, read
from study.spec.suite import base_of_file, find_suite, load_suite


@dataclass(frozen=True)
class SuiteFile:
    """A checked suite file whose base, where it names a study file, is written out.

    Attributes:
        text: YAML.
    """

    name: str
    text: str

    function_is_pickled = False

    @property
    def hash(self) -> str:
        return digest.of_values(self.text)

    def to_yaml(self) -> str:
        return self.text

    @classmethod
    def of(cls, suite: str) -> "SuiteFile":
        """That of a shipped name or a file's path.

        Raises:
            UserError: see `study.spec.suite.load_suite`.
        """
        name = load_suite(suite).name
        document = read(find_suite(suite))
        base_of_file(document)
        return cls(name, dump(document.values))
