"""Types of the hyperparameters that several losses share."""

from typing import Annotated

from study.knobs import Range

Temperature = Annotated[float, Range(above=0.0)]
Margin = Annotated[float, Range(low=0.0)]
Prior = Annotated[float, Range(low=0.0, below=1.0)]
Weight = Annotated[float, Range(low=0.0)]
Guard = Annotated[float, Range(low=0.0, high=1.0)]
Positive = Annotated[float, Range(above=0.0)]
Count = Annotated[int, Range(low=1)]
