"""wcl: two encoders without labels; what the biased one finds hard weighs more for the debiased one (WCL paper 5.2)."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor
from torch.nn import functional
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Knob, Section, knobs, options
from study.losses.difficulty import Form, biased_triplet, difficulty_weighted_info_nce
from study.losses.ranges import DebiasedTemperature, Prior
from study.methods.balance import balance_knobs
from study.methods.batch import Batch, Method, NewNetwork
from study.methods.needs import Needs
from study.models import Encoder, Network

NAMES = ["wcl"]


@dataclass(frozen=True)
class Options:
    """Keys of the method."""

    temperature: DebiasedTemperature = 0.5
    tau_plus: Annotated[
        Prior, Doc("probability that two samples share their class, in both losses; 0 in the triplet's is Eq. 5")
    ] = 0.1
    form: Form = "sum"


class Wcl(Method):
    """A debiased and a biased network of one structure, trained side by side (WCL paper, Algorithm 1).

    Their objective is the sum of both losses, each of which trains its own network alone. Step 3 of the algorithm
    prints the subscripts d and b of the embeddings swapped: there the biased encoder's parameters descend on the
    debiased embeddings. Section 5.2 and Figure 2 have it as here.
    """

    views = 2

    def __init__(self, settings: Options, network: Network, biased: Network) -> None:
        super().__init__()
        self.options, self.network, self.biased = settings, network, biased

    def recording(self) -> Hashable | None:
        return ()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        features, views = _embed(self.network, batch.views)
        biased_features, biased_views = _embed(self.biased, batch.views)
        triplet = biased_triplet(biased_views, tau_plus=self.options.tau_plus)
        contrast = difficulty_weighted_info_nce(views, biased_views=biased_views.detach(), **vars(self.options))
        return contrast + triplet, {"encoder": features, "biased_encoder": biased_features}

    def encoders(self) -> dict[str, Encoder]:
        return {"encoder": self.network.encoder, "biased_encoder": self.biased.encoder}


def _embed(network: Network, views: Tensor) -> tuple[Tensor, Tensor]:
    """Return features of the first view (B, F) and unit embeddings of both (2, B, D)."""
    features, embeddings = network(views.flatten(0, 1))
    return features[: views.shape[1]], functional.normalize(embeddings, dim=1).unflatten(0, views.shape[:2])


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(Options)
    yield from balance_knobs(method)


def needs(method: Section) -> Needs:
    """Return the needs: two views that differ."""
    return Needs(views="name", varies=None)


def build(method: Section, facts: Facts, new_network: NewNetwork) -> Method:
    """Build the method of a complete, checked `method` section."""
    return Wcl(options(Options, method), new_network(), new_network())
