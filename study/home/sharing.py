"""How a cluster is shared among studies and owners: the file `sharing.yaml` of the home, which need not be there.

slots: 16                # trials at once of each owner who has none of their own below; without: any number
owners:
  alice: {share: 2, slots: 32}    # twice the share of who has 1, and up to 32 trials at once
"""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import BeforeValidator, ConfigDict, Strict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from study.errors import UserError

FILE = "sharing.yaml"

Count = Annotated[int, Strict(), Ge(1)]

Name = Annotated[str, BeforeValidator(str)]
"""Of an owner, which may be a number."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Limits:
    """What an owner may have beside other owners, or a study beside its owner's others.

    Attributes:
        share: of the trials that run at once.
        slots: trials at once at most; None: the home's, or as many as there is room for.
    """

    share: Annotated[float, Strict(), Ge(0.01), Le(100)] = 1.0
    slots: Count | None = None

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> "Limits":
        """Those that a study's job was submitted with; what cannot be used there is left at its default."""
        try:
            slots = int(metadata["slots"]) if "slots" in metadata else None
            return cls(float(metadata.get("share", 1.0)), slots)
        except ValueError:
            return cls()

    def tags(self) -> dict[str, str]:
        """Return what a job is submitted with, as `of` reads it."""
        slots = {} if self.slots is None else {"slots": str(self.slots)}
        return {"share": f"{self.share:g}", **slots}


UNLIMITED = Limits()
"""Those of a study of which nothing is said."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Sharing:
    """The settings of a home."""

    slots: Count | None = None
    owners: Annotated[dict[Name, Limits], BeforeValidator(lambda told: told or {})] = field(default_factory=dict)

    def of(self, owner: str) -> Limits:
        """Return what an owner may have."""
        found = self.owners.get(owner, UNLIMITED)
        return replace(found, slots=self.slots if found.slots is None else found.slots)


def sharing(home: Path) -> Sharing:
    """The settings of a home.

    Raises:
        UserError: the file is not as it should be; says what is allowed.
    """
    path = home / FILE
    if not path.exists():
        return Sharing()
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        told = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        return TypeAdapter(Sharing).validate_python({} if told is None else told)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "it"
        why = "unknown key" if "Unexpected" in first["msg"] else first["msg"].replace("Input should be", "allowed is")
        raise UserError(f"{path}: {key}: {first['input']!r} given, {why}") from None
    except (OSError, ValueError, YAMLError) as error:
        raise UserError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None


class LatestSharing:
    """The settings of a home, read anew at each call; while they cannot be used, the last that could.

    Args:
        tell: is told once why they cannot be used.
    """

    def __init__(self, home: Path, tell: Callable[[str], object]) -> None:
        self._home, self._tell, self._said, self._settings = home, tell, "", Sharing()

    def __call__(self) -> Sharing:
        try:
            self._settings = sharing(self._home)
        except UserError as error:
            if str(error) != self._said:
                self._said = str(error)
                self._tell(f"warning: {error}. It is not used")
        return self._settings
