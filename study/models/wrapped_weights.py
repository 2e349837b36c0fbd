"""The weights within a file of the field's programs: what they lie under, and what stands before each name."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from study.errors import UserError
from study.text.quoted import some

if TYPE_CHECKING:
    from torch import Tensor

WITHIN = ("state_dict", "model", "net", "student", "teacher")
"""Keys under which programs keep the weights in their file, also one within another."""

OURS = ("method.network.encoder.net.", "encoder.net.")
"""What stands before each name in a trained model of this project and in its encoder: taken before any other."""

OLD_DENSE = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)")
"""Names in torchvision's files of DenseNets, which have a dot too many."""

DEEPEST = 4
"""Most keys that weights may lie under, one within another."""


class Found(NamedTuple):
    """A mapping of names to tensors, a prefix of some of its names, and how many wanted names it leads to."""

    within: tuple[str, ...]
    prefix: str
    fitting: int
    content: Mapping[str, Any]


def unwrapped(content: Any, wanted: Collection[str], place: str) -> "dict[str, Tensor]":
    """Return the tensors that one prefix, which may be empty, leads to: the one with which all wanted names are found,
    or else the one with most of them. Names without the prefix are left out.

    Args:
        content: what is in a file.
        wanted: the network's own names.
        place: what a message begins with.

    Raises:
        UserError: there are no tensors, or several mappings or prefixes lead to all wanted names.
    """
    mappings = list(_mappings(content))
    if not mappings:
        raise UserError(f"{place}: does not hold a network's weights (a mapping of names to tensors)")
    found = [
        Found(within, prefix, fitting, tensors)
        for within, tensors in mappings
        for prefix, fitting in _prefixes(tensors, frozenset(wanted)).items()
    ]
    whole = [one for one in found if one.fitting == len(wanted)]
    ours = [one for one in whole if one.prefix in OURS]
    if len(whole) > 1 and len(ours) != 1:
        names = some(["/".join((*one.within, f"{one.prefix}*")) for one in whole])
        raise UserError(
            f"{place}: holds the weights of several networks that fit: {names}. Save the one to begin from as a file "
            "of its own"
        )
    best = (ours or whole or [max(found, key=lambda one: one.fitting)])[0]
    return {
        name.removeprefix(best.prefix): tensor for name, tensor in best.content.items() if name.startswith(best.prefix)
    }


def check_finite(state: "Mapping[str, Tensor]", place: str) -> None:
    """Check that all values are finite.

    Raises:
        UserError: begins with `place`, then names the tensors that hold others.
    """
    faulty = [name for name, tensor in state.items() if not bool(tensor.float().isfinite().all())]
    if faulty:
        raise UserError(f"{place}: values that are not finite (nan or infinity) in {some(faulty)}")


def _mappings(content: Any, within: tuple[str, ...] = ()) -> "Iterator[tuple[tuple[str, ...], dict[str, Tensor]]]":
    """Yield each mapping of names to tensors in a file's content, with the keys that it lies under."""
    import torch

    if not isinstance(content, Mapping) or len(within) > DEEPEST:
        return
    if content and all(isinstance(name, str) and torch.is_tensor(tensor) for name, tensor in content.items()):
        yield within, {OLD_DENSE.sub(r"\1\2", name): tensor for name, tensor in content.items()}
        return
    for key in WITHIN:
        yield from _mappings(content.get(key), (*within, key))


def _prefixes(names: Collection[str], wanted: Collection[str]) -> dict[str, int]:
    """Return each prefix that ends in a dot, and the empty one, with how many wanted names it leads to."""
    found = {"": 0}
    for name in names:
        for at in [0, *(dot.end() for dot in re.finditer(r"\.", name))]:
            if name[at:] in wanted:
                found[name[:at]] = found.get(name[:at], 0) + 1
    return found
