"""EfficientNet-Lite0: the definition here gives the features of timm's."""

import timm
import torch

from study import models
from study.data.dataset import Facts
from study.models import initial_weights

PHOTOS = Facts(3, 2, (3, 64, 48))


def test_features_of_efficientnet_lite0_are_those_of_timms_definition() -> None:
    section = {"name": "efficientnet_lite0", "weights": "imagenet", "normalisation": "data"}
    file, _ = initial_weights.find_weights_file(section)
    theirs = timm.create_model("tf_efficientnet_lite0")
    theirs.load_state_dict(dict(zip(theirs.state_dict(), torch.load(file, weights_only=True).values(), strict=True)))
    theirs.reset_classifier(0)
    own = models.build_encoder_without_head(section, PHOTOS).eval()
    for side in (64, 160, 101):
        images = torch.rand(4, 3, side, side, generator=torch.Generator().manual_seed(1))
        with torch.inference_mode():
            torch.testing.assert_close(own(images), theirs.eval()(images), atol=1e-4, rtol=0)
