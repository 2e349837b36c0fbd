"""The values that a search may give to one key: a range or choices, as a study file has them, checked."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from study.knobs import MAX_INTEGER, Params, Scalar, Value
from study.spec.section_models import StrictModel
from study.text import shorten_text


def is_among_typed_values(value: Value, values: Iterable[Value]) -> bool:
    """Return whether a value is one of these; true and 1 are two values, though Python calls them equal."""
    return any(isinstance(value, bool) == isinstance(other, bool) and value == other for other in values)


def _refuse_oversized_integer(value: Value) -> Value:
    """Return a value as it is, before a whole number that is too large would become a float.

    Raises:
        ValueError: it is a whole number that no ledger or database holds.
    """
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError(f"allowed is a whole number of at most {MAX_INTEGER}, in size")
    return value


def _check_choice_is_scalar(value: Value) -> Value:
    """Return a choice as it is.

    Raises:
        ValueError: it is several values, or a whole number that is too large.
    """
    if isinstance(value, list | dict):
        raise ValueError(
            f"{shorten_text(repr(value))} given, allowed is one value: a number, a word, true, false or null. Give "
            "what is a list or a mapping a name of its own, and have what is trained look it up by that"
        )
    return _refuse_oversized_integer(value)


FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]
FiniteNumber = Annotated[int | FiniteFloat, BeforeValidator(_refuse_oversized_integer)]
ChoiceValue = Annotated[bool | int | FiniteFloat | str | None, BeforeValidator(_check_choice_is_scalar)]


class Domain(StrictModel):
    """Values that the search may give to one key: a range, or choices.

    A plain value stands for a single choice, `paper` for `range: paper`.

    Attributes:
        range: `paper`: the range that the papers' methods declare, which the other keys override.
        low: the smallest value.
        high: the largest value.
        log: draw on a logarithmic scale; low is above 0 then.
        step: distance of neighbouring values of a range, counted from `low`.
        choices: the values themselves, in the place of a range.
        when: other keys with lists of values: the key is searched only in trials where each has one of its values.
    """

    range: Literal["paper"] | None = None
    low: FiniteNumber | None = None
    high: FiniteNumber | None = None
    log: bool = False
    step: Annotated[FiniteNumber, Field(gt=0)] | None = None
    choices: Annotated[list[ChoiceValue], Field(min_length=1)] | None = None
    when: dict[str, Annotated[list[ChoiceValue], Field(min_length=1)]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: "Value | Domain") -> "Value | Domain":
        if value == "paper":
            return {"range": "paper"}
        if isinstance(value, list):
            given = shorten_text(repr(value))
            raise ValueError(f"{given} given: values to choose from are written as {{choices: [...]}}")
        return value if isinstance(value, dict | list | Domain) else {"choices": [value]}

    @model_validator(mode="after")
    def _check_range_or_choices(self) -> Self:
        if self.choices is not None:
            if any((self.low is not None, self.high is not None, self.log, self.step is not None, self.range)):
                raise ValueError("give either choices, or low and high, not both")
            for place, choice in enumerate(self.choices):
                if is_among_typed_values(choice, self.choices[:place]):
                    first = next(one for one in self.choices if is_among_typed_values(choice, [one]))
                    equal = "" if type(first) is type(choice) else f", as {first!r} and {choice!r} are one number"
                    raise ValueError(f"a choice is repeated: {self.choices}{equal}")
            return self
        if self.range is None and (self.low is None or self.high is None):
            raise ValueError("give low and high, or choices, or the word paper")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low!r} is above high {self.high!r}")
        if self.log and self.low is not None and self.low <= 0:
            raise ValueError(f"a log range needs low above 0, low is {self.low!r}")
        if self.log and self.step is not None:
            raise ValueError("log and step exclude each other")
        return self

    def boundary_values(self) -> list[Scalar]:
        """Return the values that must be valid for the whole domain to be: both ends, or every choice."""
        return list(self.choices) if self.choices is not None else [self.low, self.high]

    @property
    def is_range_of_reals(self) -> bool:
        """Whether it is plainly a range of real numbers: it has no step, and an end that is no whole number."""
        return self.step is None and any(end is not None and end % 1 != 0 for end in (self.low, self.high))

    def is_condition_met(self, params: Params) -> bool:
        """Return whether `when` holds for a trial with these parameters."""
        return all(key in params and is_among_typed_values(params[key], values) for key, values in self.when.items())

    def is_ruled_out_by(self, params: Params) -> bool:
        """Return whether `when` does not hold, as far as these parameters say."""
        given = {key: values for key, values in self.when.items() if key in params}
        return not all(is_among_typed_values(params[key], values) for key, values in given.items())

    def contains(self, value: Scalar) -> bool:
        """Return whether the search could give this value."""
        if self.choices is not None:
            return is_among_typed_values(value, self.choices)
        if self.low is None or self.high is None or not isinstance(value, int | float):
            return False
        if not self.low <= value <= self.high:
            return False
        return self.step is None or abs((value - self.low) / self.step % 1.0 - 0.5) > 0.5 - 1e-8


MAX_GRID_CELLS = 100_000
"""Most cells of a grid: nobody would run more, and each is checked before anything starts."""


def grid_values_of_domain(domain: Domain, whole: bool, every: bool = False) -> list[Scalar]:
    """Return the values of one key, in the file's order; `whole` ranges are of whole numbers.

    Args:
        every: list each whole number of a range on a log scale, too, which a grid does not try.

    Raises:
        ValueError: a range without steps, or with more than `MAX_GRID_CELLS`: its values cannot be listed.
    """
    if domain.choices is not None:
        return list(domain.choices)
    low, high, step = domain.low, domain.high, domain.step or (1 if whole and (every or not domain.log) else None)
    assert low is not None
    assert high is not None
    if low == high:
        return [low]
    if step is None:
        raise ValueError(f"the range {low!r} to {high!r} has no step: a grid needs a step, or choices")
    if not (high - low) / step < MAX_GRID_CELLS:  # asked before anything is listed
        many = f"more than {MAX_GRID_CELLS} values, the most cells of a grid"
        raise ValueError(f"{low!r} to {high!r} in steps of {step!r} are {many}")
    places = range(_count_steps_of_range(low, high, step) + 1)
    return [_value_at_step(low, step, place, whole) for place in places]


def last_grid_value(domain: Domain, whole: bool) -> int | float:
    """Return the highest value of a range with a step."""
    assert domain.low is not None
    assert domain.high is not None
    assert domain.step is not None
    return _value_at_step(domain.low, domain.step, _count_steps_of_range(domain.low, domain.high, domain.step), whole)


def _count_steps_of_range(low: float, high: float, step: float) -> int:
    return int((high - low) / step + 1e-8)


def _value_at_step(low: float, step: float, place: int, whole: bool) -> int | float:
    if whole:
        return int(low) + place * int(step)
    return float(Decimal(str(low)) + place * Decimal(str(step)))
