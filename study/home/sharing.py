"""How a cluster is shared among studies and owners: the file `sharing.yaml` of the home, which need not be there.

drivers: 4               # studies that run at once; without: what fits the memory of the head
slots: 16                # trials at once of each owner who is not named below; without: any number
owners:
  alice: {share: 2, slots: 32}    # twice the share of who has 1, and up to 32 trials at once
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from study.errors import UserError

FILE = "sharing.yaml"

KEYS, OWNER_KEYS = ("drivers", "slots", "owners"), ("share", "slots")


@dataclass(frozen=True)
class Owner:
    """The limits of an owner: `share` beside that of others, `slots` trials at once at most (None: any number)."""

    share: float = 1.0
    slots: int | None = None


@dataclass(frozen=True)
class Sharing:
    """The settings of a home; `drivers` None: what fits the memory."""

    drivers: int | None = None
    slots: int | None = None
    owners: Mapping[str, Owner] = field(default_factory=dict)

    def of(self, owner: str) -> Owner:
        """Return what an owner may have."""
        return self.owners.get(owner, Owner(slots=self.slots))


def sharing(home: Path) -> Sharing:
    """The settings of a home.

    Raises:
        UserError: the file is not as it should be; says what is allowed.
    """
    path = home / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Sharing()
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        told = YAML(typ="safe").load(text)
    except YAMLError as error:
        raise UserError(f"{path}: is no YAML: {' '.join(str(error).split())}") from None
    told = _mapping(path, "", {} if told is None else told, KEYS)
    slots = _count(path, "slots", told.get("slots"))
    owners = told.get("owners") or {}
    if not isinstance(owners, dict):
        raise UserError(f"{path}: owners: {owners!r} given, owners' names with their settings are needed")
    found = {str(name): _owner(path, f"owners.{name}", of, slots) for name, of in owners.items()}
    return Sharing(_count(path, "drivers", told.get("drivers")), slots, found)


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


def _owner(path: Path, key: str, told: Any, slots: int | None) -> Owner:
    told = _mapping(path, key, told, OWNER_KEYS)
    share = told.get("share", 1.0)
    if type(share) not in (int, float) or not 0.01 <= share <= 100:
        raise UserError(f"{path}: {key}.share: {share!r} given, a number from 0.01 to 100 is needed")
    return Owner(float(share), _count(path, f"{key}.slots", told.get("slots", slots)))


def _mapping(path: Path, key: str, told: Any, allowed: tuple[str, ...]) -> dict[str, Any]:
    place = f"{key}: " if key else ""
    if not isinstance(told, dict):
        raise UserError(f"{path}: {place}{told!r} given, keys are needed: {', '.join(allowed)}")
    for name in told:
        if name not in allowed:
            raise UserError(f"{path}: {place}there is no key {name!r}; there are: {', '.join(allowed)}")
    return told


def _count(path: Path, key: str, value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise UserError(f"{path}: {key}: {value!r} given, a whole number from 1 is needed")
    return value
