"""Networks by name: each is one module with a dataclass `Options` and two functions of `(options, facts)`.

`unsuited` says what is wrong with a data set for the network, or None; `build` gives an `Encoder`. Here, `network` puts
the projection head of the same section on it. Other distributions can bring more: see `study.catalogue`.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from study.answer_cache import KeptCatalogue, kept
from study.catalogue import later, modules
from study.data.dataset import Facts
from study.errors import UserError
from study.knobs import Knob, knobs

if TYPE_CHECKING:
    from study.models.encoder import Encoder
    from study.models.head import Network

__all__ = ["CATALOGUE", "Encoder", "Network", "build", "model_knobs", "names", "network", "unsuited"]

__getattr__ = later({"Encoder": "study.models.encoder", "Network": "study.models.head"})


def _own() -> Mapping[str, Any]:
    return modules("study.models", "Options")


CATALOGUE = KeptCatalogue("study.models", ("Options", "unsuited", "build"), _own)


def names() -> list[str]:
    """Every network that `model.name` may name."""
    return CATALOGUE.names()


def model_knobs(model: Mapping[str, Any]) -> dict[str, Knob]:
    """The keys of a `model` section besides `name`: the encoder's own and those of its head that have an effect."""
    return {} if model["name"] == CATALOGUE.apart else _model_knobs(model)


@kept
def _model_knobs(model: Mapping[str, Any]) -> dict[str, Knob]:
    from study.models.head import HeadOptions

    head = model.get("head", "none")
    without = {"none": {"head_hidden", "head_features", "head_norm"}, "linear": {"head_hidden"}}.get(str(head), set())
    own = knobs(CATALOGUE.find(model["name"]).Options)
    return {knob.key: knob for knob in (*own, *knobs(HeadOptions)) if knob.key not in without}


@kept
def unsuited(model: Mapping[str, Any], facts: Facts) -> str | None:
    """What is wrong with a data set for the network of a `model` section, ready to show; None if it can be trained."""
    problem = _problem(model, facts)
    if problem is None:
        return None
    others = [name for name in _own() if _problem({"name": name}, facts) is None]  # no code of others for a message
    return f"{model['name']} {problem}. Networks for this data: {', '.join(others) or 'none'}"


def build(model: Mapping[str, Any], facts: Facts) -> "Encoder":
    """The encoder of a `model` section for a data set, freshly initialised from torch's generator.

    Raises:
        UserError: the network is not one for this data.
    """
    if (problem := unsuited(model, facts)) is not None:
        raise UserError(f"model.name: {problem}")
    module, options = _choice(model)
    encoder: Encoder = module.build(options, facts)
    return encoder


def network(model: Mapping[str, Any], facts: Facts) -> "Network":
    """The encoder of a `model` section with its projection head."""
    from study.models.head import HeadOptions, Network

    return Network(build(model, facts), HeadOptions(**{key: model[key] for key in _head() if key in model}))


def _choice(model: Mapping[str, Any]) -> tuple[Any, Any]:
    """The module of a `model` section and its options, those of the head left out."""
    module = CATALOGUE.find(model["name"])
    return module, module.Options(**{key: model[key] for key in model if key not in {"name", *_head()}})


def _head() -> set[str]:
    from study.models.head import HeadOptions

    return {field.name for field in fields(HeadOptions)}


def _problem(model: Mapping[str, Any], facts: Facts) -> str | None:
    module, options = _choice(model)
    problem: str | None = module.unsuited(options, facts)
    return problem
