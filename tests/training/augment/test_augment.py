"""The augmentations that a study file may name: one contract for all of them."""

from dataclasses import replace

import pytest
import torch
from draws import generator
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close
from torchvision.transforms.v2 import functional as oracle

from study.data.dataset import Facts
from study.errors import UserError
from study.training import augment
from study.training.config import TrainOptions

IMAGE, GREY, TABLE = (3, 32, 32), (1, 28, 28), (7,)
OPTIONS = TrainOptions()


def facts(shape: tuple[int, ...]) -> Facts:
    return Facts(classes=2, bias_classes=None, shape=shape)


def samples(shape: tuple[int, ...], batch: int = 24) -> Tensor:
    return torch.rand(batch, *shape, generator=generator())


USABLE = [
    (name, shape)
    for name in augment.AUGMENTATION_CHECKS
    for shape in (IMAGE, GREY, TABLE)
    if augment.why_augmentation_unsuited(name, facts(shape)) is None
]


@pytest.mark.parametrize(("name", "shape"), USABLE)
class TestContract:
    def test_gives_float32_of_the_same_shape_and_range(self, name: str, shape: tuple[int, ...]) -> None:
        views = augment.build_augmentation(name, shape, OPTIONS)(samples(shape), generator(), 3)
        assert views.dtype == torch.float32
        assert views.shape == (3, 24, *shape)
        if shape != TABLE:
            assert views.min() >= 0
            assert views.max() <= 1

    def test_leaves_the_batch_as_it_is(self, name: str, shape: tuple[int, ...]) -> None:
        batch = samples(shape)
        augment.build_augmentation(name, shape, OPTIONS)(batch, generator())
        assert torch.equal(batch, samples(shape))

    def test_the_same_seed_gives_the_same_views(self, name: str, shape: tuple[int, ...]) -> None:
        torch.manual_seed(1)
        first = augment.build_augmentation(name, shape, OPTIONS)(samples(shape), generator(5))
        torch.manual_seed(2)  # nothing may come from the global generator
        assert torch.equal(first, augment.build_augmentation(name, shape, OPTIONS)(samples(shape), generator(5)))

    def test_two_views_differ_exactly_if_it_is_random(self, name: str, shape: tuple[int, ...]) -> None:
        augmentation, draw = augment.build_augmentation(name, shape, OPTIONS), generator()
        first, second = augmentation(samples(shape), draw, 2)
        assert torch.equal(first, second) != augment.has_random_views(name)

    def test_each_view_is_of_its_own_sample(self, name: str, shape: tuple[int, ...]) -> None:
        even = torch.linspace(0.2, 0.8, 24).view(24, *[1] * len(shape)).expand(24, *shape)
        options = replace(OPTIONS, jitter=0.0, corruption=0.0, noise=0.001)
        views = augment.build_augmentation(name, shape, options)(even, generator(), 3)
        assert_close(
            views.contiguous().flatten(2).median(2).values, even.flatten(1)[:, 0].expand(3, 24), atol=0.01, rtol=0
        )

    def test_each_sample_has_parameters_of_its_own(self, name: str, shape: tuple[int, ...]) -> None:
        same = samples(shape, 1).expand(200, *shape)
        if name == "corrupt_columns":
            same = samples(shape, 200)  # equal rows have nothing to take from each other
        views = augment.build_augmentation(name, shape, OPTIONS)(same, generator(), 2)
        distinct = len((views - same).flatten(0, 1).flatten(1).unique(dim=0))
        assert distinct > 200 if augment.has_random_views(name) else distinct == 1

    def test_one_sample_is_a_batch(self, name: str, shape: tuple[int, ...]) -> None:
        assert augment.build_augmentation(name, shape, OPTIONS)(samples(shape, 1), generator()).isfinite().all()

    def test_its_shape_is_told_without_making_it(self, name: str, shape: tuple[int, ...]) -> None:
        for options in (OPTIONS, replace(OPTIONS, crop_size=20)):
            views = augment.build_augmentation(name, shape, options)(samples(shape, 2), generator())
            assert views.shape[2:] == augment.augmented_shape(name, shape, options)

    def test_nothing_waits_for_the_device(self, name: str, shape: tuple[int, ...]) -> None:
        augmentation = augment.build_augmentation(name, shape, OPTIONS)
        with FakeTensorMode(
            allow_non_fake_inputs=True
        ):  # tensors without values: reading one, or a shape that hangs on one, is an error
            assert augmentation(torch.rand(24, *shape), generator(), 2).shape == (2, 24, *shape)

    def test_autocast_does_not_lower_the_precision(self, name: str, shape: tuple[int, ...]) -> None:
        augmentation = augment.build_augmentation(name, shape, OPTIONS)
        with torch.autocast("cpu", torch.bfloat16):
            inside = augmentation(samples(shape), generator())
        assert torch.equal(inside, augmentation(samples(shape), generator()))


@pytest.mark.parametrize("name", ["crop_flip", "simclr", "simclr_blur"])
def test_the_crop_is_as_large_and_at_least_as_wide_as_asked(name: str) -> None:
    options = replace(OPTIONS, crop_size=20, crop_scale=1.0, jitter=0.0)
    ramp = torch.linspace(0, 1, 32).expand(64, 1, 32, 32)
    views = augment.build_augmentation(name, (1, 32, 32), options)(ramp, generator())[0]
    span = views.amax((1, 2, 3)) - views.amin((1, 2, 3))
    assert span.min() > 0.8  # at scale 1 nothing, or little where the ratio does not fit, is cut off


def test_each_recipe_keeps_the_area_of_its_protocol() -> None:
    ramp = torch.linspace(0, 1, 32).expand(2000, 1, 32, 32)
    options = replace(OPTIONS, jitter=0.0)
    spans = {}
    for name in ("crop_flip", "simclr", "simclr_blur"):
        views = augment.build_augmentation(name, (1, 32, 32), options)(ramp, generator())[0, :, 0, 16]
        spans[name] = float((views[:, 0] - views[:, -1]).abs().min())
    assert spans["simclr"] == pytest.approx(12 / 32, abs=0.05)  # sqrt(0.2 * 3/4) of the width
    assert spans["crop_flip"] == pytest.approx(7 / 32, abs=0.05)
    assert spans["simclr_blur"] == pytest.approx(7 / 32, abs=0.07)


def test_jitter_0_leaves_colours_alone() -> None:
    options = replace(OPTIONS, jitter=0.0)
    even = torch.tensor([0.7, 0.4, 0.1]).view(3, 1, 1).expand(64, *IMAGE)
    views = augment.build_augmentation("simclr", IMAGE, options)(even, generator())[0]
    grey = (views[:, 0] - views[:, 1]).abs().amax((1, 2)) < 1e-5
    assert 0 < grey.sum() < 32
    assert_close(views[~grey], even[~grey], atol=1e-5, rtol=0)


@pytest.mark.parametrize("views", [1, 3])
def test_corrupted_values_come_from_the_rows_of_the_batch_in_every_view(views: int) -> None:
    rows = torch.arange(70.0).view(10, 7)
    made = augment.build_augmentation("corrupt_columns", TABLE, replace(OPTIONS, corruption=1.0))(
        rows, generator(), views
    )
    assert torch.equal(made % 7, (rows % 7).expand(views, 10, 7))
    assert (made != rows).all()  # a row is no source of its own other views


def test_options_of_tables_are_used() -> None:
    rows = samples(TABLE, 64)
    untouched = augment.build_augmentation("corrupt_columns", TABLE, replace(OPTIONS, corruption=0.0))(
        rows, generator()
    )
    assert torch.equal(untouched[0], rows)
    loud = augment.build_augmentation("noise", TABLE, replace(OPTIONS, noise=5.0))(rows, generator())
    assert (loud - rows).std() > 3


def test_an_unknown_name_and_data_that_do_not_suit_are_the_users_to_mend() -> None:
    with pytest.raises(UserError, match=r"'simclr_blu' given. Did you mean 'simclr_blur'\?"):
        augment.build_augmentation("simclr_blu", IMAGE, OPTIONS)
    with pytest.raises(UserError, match=r"'simclr' is for images.*Allowed: corrupt_columns, noise, none"):
        augment.build_augmentation("simclr", TABLE, OPTIONS)
    assert augment.why_augmentation_unsuited("noise", facts(IMAGE)) == "'noise' is for tables, the data set has images"
    assert "5 channels" in str(augment.why_augmentation_unsuited("bias_con", facts((5, 8, 8))))
    assert augment.why_augmentation_unsuited("crop_flip", facts((5, 8, 8))) is None


@pytest.mark.parametrize(("size", "side"), [(28, 32), (96, 40)])
def test_evaluation_resizes_as_torchvision(size: int, side: int) -> None:
    images = samples((3, size, size), 4)
    assert_close(augment.resize_for_evaluation(images, side), oracle.resize(images, [side, side]), atol=1e-6, rtol=0)


def test_evaluation_keeps_the_native_size_and_tables() -> None:
    images, rows = samples(IMAGE), samples(TABLE)
    assert augment.resize_for_evaluation(images, None) is images
    assert augment.resize_for_evaluation(images, 32) is images
    assert augment.resize_for_evaluation(rows, 32) is rows
