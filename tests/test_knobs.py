"""Hyperparameters as their owners declare them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from torch import Tensor
from typing_extensions import Doc

from study.knobs import Knob, Range, read_knobs


@dataclass(frozen=True)
class Options:
    width: Annotated[int, Range(low=1)]
    kind: Literal["a", "b"] = "a"
    shares: tuple[Annotated[float, Range(above=0.0)], ...] = (0.5,)


def loss(
    views: Tensor,
    scale: float = 1.0,
    *,
    target: Tensor,
    bias: Tensor | None = None,
    lambda_: Annotated[float, Range(low=0.0)],
    margin: float | None = None,
) -> Tensor:
    return views


def test_a_dataclass_gives_its_fields_with_type_default_and_whether_required() -> None:
    width, kind, shares = read_knobs(Options)
    assert width == Knob("width", Annotated[int, Range(low=1)], None, True)
    assert kind == Knob("kind", Literal["a", "b"], "a", False)
    assert (shares.default, shares.required) == ((0.5,), False)


def test_a_function_gives_its_keyword_only_parameters_but_no_tensors() -> None:
    assert [knob.key for knob in read_knobs(loss)] == ["lambda", "margin"]


def test_the_docstring_says_what_each_is_and_that_of_a_base_class_where_it_says_nothing() -> None:
    @dataclass(frozen=True)
    class Base:
        """Keys of two classes.

        Attributes:
            lambda_: weight of a term
                that is long: so long.
            width: units.
        """

        lambda_: Annotated[float, Range(low=0.0), Doc("a weight")]
        width: int

    @dataclass(frozen=True)
    class Own(Base):
        """Keys of one.

        Attributes:
            width: units of the layer, as 3.5.
        """

    assert [knob.description for knob in read_knobs(Base)] == ["weight of a term that is long: so long", "units"]
    assert [knob.description for knob in read_knobs(Own)][1] == "units of the layer, as 3.5"

    def loss(*, epsilon: float, guard: Annotated[float, Doc("added")]) -> None:
        """Compute.

        Args:
            epsilon: a margin.

        Raises:
            ValueError: none.
        """

    assert [knob.description for knob in read_knobs(loss)] == ["a margin", "added"]


def test_the_last_doc_says_what_it_is_and_is_no_part_of_the_type() -> None:
    def described(
        *,
        shared: Annotated[Annotated[float, Range(low=0.0), Doc("a weight")], Doc("weight of this loss")],
        perhaps: Annotated[Annotated[int, Doc("a number")] | None, Doc("how many; null: all")],
        plain: Annotated[bool, Doc("whether")],
        silent: float,
    ) -> None: ...

    shared, perhaps, plain, silent = read_knobs(described)
    assert (shared.type, shared.description) == (Annotated[float, Range(low=0.0)], "weight of this loss")
    assert (perhaps.plain_types, perhaps.description) == ((int, type(None)), "how many; null: all")
    assert (plain.type, plain.description) == (bool, "whether")
    assert (silent.type, silent.description) == (float, "")
