"""Random resized crops, against torchvision on each image by itself."""

import math

import pytest
import torch
from draws import generator
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as oracle

from study.training.augment.operations import CropBoxes, Interpolation, ResizedCrop, draw_crop_boxes, resized_crop


def expected(
    images: Tensor, boxes: CropBoxes, size: tuple[int, int], flip: Tensor, interpolation: Interpolation
) -> Tensor:
    results = []
    for image, top, left, height, width, mirrored in zip(images, *boxes.corner, *boxes.side_lengths, flip, strict=True):
        box = (int(top), int(left), int(height), int(width))
        crop = oracle.resized_crop(image, *box, list(size), InterpolationMode(interpolation), antialias=True)
        results.append(oracle.horizontal_flip(crop) if mirrored else crop)
    return torch.stack(results).clamp(0.0, 1.0)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize(
    ("shape", "size"),
    [((3, 32, 32), (32, 32)), ((3, 28, 28), (32, 32)), ((1, 40, 29), (13, 17)), ((4, 9, 33), (40, 5))],
)
def test_equal_to_torchvision(shape: tuple[int, int, int], size: tuple[int, int], interpolation: Interpolation) -> None:
    images = torch.rand(24, *shape, generator=generator())
    boxes = draw_crop_boxes(generator(1), 24, shape[1:], 0.05, 4 / 3)
    flip = (torch.rand(24, generator=generator(2)) < 0.5).float()
    ours = resized_crop(images, boxes, size, flip, interpolation)
    assert_close(ours, expected(images, boxes, size, flip, interpolation), atol=2e-6, rtol=0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30), st.sampled_from(["bilinear", "bicubic"]), st.data())
def test_any_box_of_any_image_is_resized_as_torchvision_does(
    height: int, width: int, size: int, interpolation: Interpolation, data: st.DataObject
) -> None:
    tall, wide = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    top, left = data.draw(st.integers(0, height - tall)), data.draw(st.integers(0, width - wide))
    images = torch.rand(1, 3, height, width, generator=generator(height * width))
    boxes = CropBoxes(torch.tensor([[top], [left]]).float(), torch.tensor([[tall], [wide]]).float())
    flip = torch.tensor([float(data.draw(st.booleans()))])
    ours = resized_crop(images, boxes, (size, size), flip, interpolation)
    assert_close(ours, expected(images, boxes, (size, size), flip, interpolation), atol=2e-6, rtol=0)


def test_boxes_are_distributed_as_torchvisions() -> None:
    from torchvision.transforms import RandomResizedCrop

    torch.manual_seed(0)
    image, size = torch.zeros(1, 32, 40), (32, 40)
    drawn = [RandomResizedCrop.get_params(image, [0.3, 1.0], [3 / 4, 4 / 3]) for _ in range(4000)]
    theirs = torch.tensor(drawn, dtype=torch.float32)
    ours = torch.cat(draw_crop_boxes(generator(), 40_000, size, 0.3, 4 / 3)).T
    levels = torch.linspace(0.05, 0.95, 10)
    for ours_of, theirs_of in zip(ours.T, theirs.T, strict=True):
        assert_close(ours_of.quantile(levels), theirs_of.quantile(levels), atol=1.0, rtol=0)
    assert_close(ours.mean(0), theirs.mean(0), atol=0.35, rtol=0)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.01, 1.0))
def test_boxes_lie_in_the_image(height: int, width: int, scale: float) -> None:
    boxes = draw_crop_boxes(generator(height), 64, (height, width), scale, 4 / 3)
    assert all(torch.equal(values, values.round()) for values in boxes)
    assert boxes.corner.min() >= 0
    assert boxes.side_lengths.min() >= 1
    assert ((boxes.corner + boxes.side_lengths).amax(1) <= torch.tensor([height, width])).all()


def test_where_no_box_fits_the_largest_in_the_middle_is_taken() -> None:
    boxes = draw_crop_boxes(generator(), 8, (10, 100), 1.0, 4 / 3)
    assert [values.unique().tolist() for values in torch.cat(boxes)] == [[0], [43], [10], [13]]


def test_half_of_the_samples_are_mirrored_each_by_itself() -> None:
    ramp = torch.linspace(0, 1, 16).expand(4000, 1, 16, 16)
    views = ResizedCrop()(ramp, generator())
    mirrored = views[:, 0, 8, 0] > views[:, 0, 8, -1]
    assert abs(mirrored.float().mean() - 0.5) < 3 * math.sqrt(0.25 / 4000)
    assert len(views[mirrored, 0, 8].unique(dim=0)) > 50
