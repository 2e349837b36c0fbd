"""The section of a study file that says what a trial takes."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from study.knobs import MOST
from study.spec.checks import STRICT

# Values that a study file may write in another way than they are kept.

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(value: Any) -> Any:
    """A duration such as `90m` or `1h30m` in seconds; anything else as it is."""
    if isinstance(value, str) and re.fullmatch(r"(\d+(\.\d+)?[smhd])+", value):
        return sum(float(number) * UNITS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)([smhd])", value))
    return float(value) if type(value) is int and abs(value) <= MOST else value


def configurations(value: Any) -> Any:
    """A list of configurations; the word `papers` was replaced before where it is allowed, and is refused here."""
    if isinstance(value, str):
        raise ValueError("allowed is a list of configurations, or papers")
    return value


class Resources(BaseModel):
    """What one trial takes; it trains on one card.

    Attributes:
        cpu: CPU cores.
        gpu: a GPU, or a share of one.
        accelerator: the kind of GPU, as Ray calls it (`H100`, `A100`, `T4`, `GeForce-RTX-5090`); null: any.
        hang: a trial that did not report for so long (`15m`, seconds) is ended and runs again; null: 10 times the usual
            epoch of the study's trials on that kind of device, at least a minute, 10 times more at start and end.
        keep_checkpoints: of so many of the best configurations, and of the baseline, the state behind the last epoch is
            kept, so that `study extend` goes on from it; `all`: of all trials.
    """

    model_config = STRICT
    cpu: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1
    gpu: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    accelerator: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")] | None = None
    hang: Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(seconds)] | None = None
    keep_checkpoints: Annotated[int, Field(ge=0, le=MOST)] | Literal["all"] = 5

    @property
    def device(self) -> str:
        """The kind of device that trials train on, as PyTorch calls it."""
        return "cuda" if self.gpu > 0 else "cpu"

    @model_validator(mode="before")
    @classmethod
    def _no_stack(cls, value: Any) -> Any:
        """Study files of before say that trials share no process; those that ask for it are refused."""
        if not isinstance(value, dict) or "stack" not in value:
            return value
        if value["stack"] not in ("none", {"trials": "none", "draws": "own"}):
            raise ValueError("`stack` was taken out: it made studies hardly faster. Remove it")
        return {key: of for key, of in value.items() if key != "stack"}
