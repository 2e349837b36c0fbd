"""Arguments that note what was read of them: a function's answer depends on that and on nothing else.

A reading is `[argument, how, name]`: of a mapping the value of a `key`, whether it `has` one, or all its `keys`; of a
dataclass a `field`.
"""

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

Reading = list[Any]
Note = Callable[[str, str], None]

ABSENT = object()
"""The value of a key that is not there."""


def is_watchable(argument: Any) -> bool:
    """Whether reading a part of an argument can be noted; any other argument counts as a whole."""
    return isinstance(argument, Mapping) or is_dataclass(argument)


def value_of(arguments: tuple[Any, ...], reading: Reading) -> Any:
    """What a reading gives with these arguments."""
    place, how, name = reading
    argument = arguments[place]
    if how == "field":
        return getattr(argument, name)
    if how == "keys":
        return list(argument)
    if how == "has":
        return name in argument
    return argument.get(name, ABSENT)


def watched(argument: Any, note: Note) -> Any:
    """The same argument, which calls `note(how, name)` for all that is read of it."""
    if isinstance(argument, Mapping):
        return WatchedDict(argument, note)
    kind: Any = type(argument)
    copy = object.__new__(_watching(kind))
    values = {field.name: getattr(argument, field.name) for field in fields(argument)}
    object.__setattr__(copy, "__dict__", values | {"_note": note})
    return copy


@cache
def _watching(kind: Any) -> Any:
    names = {field.name for field in fields(kind)}

    class Watched(kind):
        def __getattribute__(self, name: str) -> Any:
            if name in names and (note := object.__getattribute__(self, "__dict__").get("_note")):
                note("field", name)
            return object.__getattribute__(self, name)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, kind) and all(getattr(self, name) == getattr(other, name) for name in names)

        def __hash__(self) -> int:
            return hash(tuple(getattr(self, name) for name in sorted(names)))

    return Watched


class WatchedDict(dict[str, Any]):
    """A dictionary that notes each reading; what it cannot note key by key it notes as reading everything."""

    def __init__(self, values: Mapping[str, Any], note: Note) -> None:
        super().__init__(values)
        self._note = note

    def __getitem__(self, key: str) -> Any:
        self._note("key", key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._note("key", key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._note("has", str(key))
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._note("keys", "")
        return super().__iter__()

    def __reversed__(self) -> Iterator[str]:
        self._note("keys", "")
        return super().__reversed__()

    def __len__(self) -> int:
        self._note("keys", "")
        return super().__len__()

    def keys(self) -> Any:
        self._note("keys", "")
        return super().keys()

    def items(self) -> Any:
        return ItemsView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def pop(self, *arguments: Any) -> Any:
        self._whole()
        return super().pop(*arguments)

    def popitem(self) -> Any:
        self._whole()
        return super().popitem()

    def setdefault(self, key: str, default: Any = None) -> Any:
        self._whole()
        return super().setdefault(key, default)

    def copy(self) -> dict[str, Any]:
        return self._whole()

    def __or__(self, other: Any) -> Any:
        return self._whole() | other

    def __ror__(self, other: Any) -> Any:
        return other | self._whole()

    def __eq__(self, other: object) -> bool:
        return self._whole() == other

    def __ne__(self, other: object) -> bool:
        return self._whole() != other

    def __repr__(self) -> str:
        return repr(self._whole())

    def _whole(self) -> dict[str, Any]:
        return {key: self[key] for key in self}
