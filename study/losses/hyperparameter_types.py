"""Types of the hyperparameters that several losses share, with the ranges that the papers search.

If a type has several notes of one kind (where a search begins, what the hyperparameter is), the last one counts.
"""

from typing import Annotated

from typing_extensions import Doc

from study.knobs import Range, SearchRange

Temperature = Annotated[
    float, Range(above=0.0), SearchRange(0.05, 1.0, log=True), Doc("divides the cosine similarities")
]
SupervisedTemperature = Annotated[Temperature, SearchRange(0.05, 1.0, log=True, paper=(0.1,))]
"""0.1 in all experiments of the FairKL paper (appendix B) and of the FSCL paper (section 5)."""

DebiasedTemperature = Annotated[Temperature, SearchRange(0.05, 1.0, log=True, paper=(0.5,))]
"""0.5 for DCL, HCL and WCL alike (WCL paper 6.1)."""

BaseTemperature = Annotated[
    Temperature | None, Doc("the loss is multiplied by temperature / base_temperature; null: no factor")
]

EpsilonMargin = Annotated[
    float,
    Range(low=0.0),
    SearchRange(0.0, 0.5),
    Doc("margin between positive and negative similarities, after division by the temperature"),
]
"""0, 0.1, 0.25 and 0.5 in the FairKL paper (Tables 6 to 9)."""

ClassPrior = Annotated[
    float,
    Range(low=0.0, below=1.0),
    SearchRange(0.0, 0.3, paper=(0.1, 0.05)),
    Doc("probability that two samples share their class"),
]
"""0.1 for CIFAR-10, 0.05 for CIFAR-100, 0.3 for CelebA and Waterbirds (WCL paper 6.1); DCL's sentences need 0.01."""

KernelWidth = Annotated[
    float,
    Range(above=0.0),
    SearchRange(1.0, 1000.0, log=True, paper=(100.0, 500.0)),
    Doc("what the kernel divides by, of rbf its squared width (no factor 2); not for cosine"),
]
"""sigma^2: 1 to 1000, best at 100, then 500 (CCL-K Table 7), for conditions of a few hundred binary attributes."""

NonNegativeWeight = Annotated[float, Range(low=0.0)]
DenominatorGuard = Annotated[
    float, Range(low=0.0, high=1.0), Doc("added to the denominator, as a share of the row's largest exponential")
]
PositiveNumber = Annotated[float, Range(above=0.0)]
PositiveCount = Annotated[int, Range(low=1)]
