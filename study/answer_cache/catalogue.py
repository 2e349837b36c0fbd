"""A catalogue that says from kept answers, where there are any, what it has and what that is, without loading it."""

from dataclasses import dataclass

from study.answer_cache.answers import kept
from study.catalogue import Catalogue
from study.errors import UserError


@dataclass(frozen=True)
class KeptCatalogue(Catalogue):
    """A catalogue of which only `find` always loads an entry; that an entry cannot be used is never kept."""

    def __post_init__(self) -> None:
        _CATALOGUES[self.group] = self

    def names(self) -> list[str]:
        return _names(self.group)

    def about(self, name: str) -> str:
        return _about(self.group, name)

    def problem(self, name: str) -> str | None:
        try:
            _check(self.group, name)
        except UserError as error:
            return str(error)
        return None


_CATALOGUES: dict[str, Catalogue] = {}


@kept
def _names(group: str) -> list[str]:
    return Catalogue.names(_CATALOGUES[group])


@kept
def _about(group: str, name: str) -> str:
    return Catalogue.about(_CATALOGUES[group], name)


@kept
def _check(group: str, name: str) -> None:
    _CATALOGUES[group].find(name)
