"""A configuration that a user types for a search that runs."""

import pytest
from helpers import quickstart

from study.errors import UserError
from study.spec.configuration import invalid_value_messages, parse_configuration

TYPED = ["method.alpha=1", "method.lambda=1", "method.epsilon=0"]
BATCHES = "search.space.train.batch_size={low: 64, high: 256, step: 64}"


def test_values_have_the_kind_of_their_key_however_they_are_typed() -> None:
    spec = quickstart(BATCHES)
    params = parse_configuration(spec.space, [*TYPED, "train.batch_size=64.0"])
    kinds = {key: type(value) for key, value in params.items()}
    assert kinds == dict.fromkeys(("method.alpha", "method.lambda", "method.epsilon"), float) | {
        "train.batch_size": int
    }
    assert list(invalid_value_messages(spec.space, {**params, "train.batch_size": 64.0})) == ["train.batch_size"]


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "-.inf", ".nan"])
def test_numbers_beyond_all_bounds_are_refused(number: str) -> None:
    with pytest.raises(UserError, match="allowed is a whole number from 64 to 256 in steps of 64"):
        parse_configuration(quickstart(BATCHES).space, [*TYPED, f"train.batch_size={number}"])
