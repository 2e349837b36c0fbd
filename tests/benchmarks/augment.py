"""Images per second of the augmentations, beside kornia's of the same batch and torchvision's of one image at a time.

    OMP_NUM_THREADS=1 python tests/benchmarks/augment.py [--size 32 28] [--batch 256] [--device cuda] [--json]

float32, (batch, 3, size, size), the fastest of several calls. kornia is no dependency of this project: where it is not
installed, its column says so. torchvision's transforms draw one set of parameters per call, hence one call per image.
`--parts` times the operations of each augmentation by themselves.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from importlib.util import find_spec

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor, nn
from torchvision.transforms import v2

from study.catalogue import find_modules
from study.training import augment
from study.training.config import TrainOptions
from study.training.device import keep_freed_memory

NAMES = ("crop_flip", "simclr", "simclr_blur", "bias_con")
CALLS = 30
Change = Callable[[Tensor], Tensor]


def blur_kernel(size: int) -> int:
    return 2 * max(1, size // 20) + 1


def torchvision_transform(name: str, size: int) -> Change:
    jitter = v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8)
    scale = (0.2 if name == "simclr" else 0.08, 1.0)
    mode = v2.InterpolationMode.BICUBIC if name == "crop_flip" else v2.InterpolationMode.BILINEAR
    crop = [v2.RandomResizedCrop(size, scale, interpolation=mode), v2.RandomHorizontalFlip()]
    steps: dict[str, list[nn.Module]] = {
        "crop_flip": crop,
        "simclr": [*crop, jitter, v2.RandomGrayscale(0.2)],
        "simclr_blur": [
            *crop,
            jitter,
            v2.RandomGrayscale(0.2),
            v2.RandomApply([v2.GaussianBlur(blur_kernel(size), (0.1, 2.0))], 0.5),
        ],
        "bias_con": [v2.RandomRotation(20), jitter],
    }
    one = v2.Compose(steps[name])
    return lambda batch: torch.stack([one(image) for image in batch])


def kornia_transform(name: str, size: int) -> Change | None:
    if find_spec("kornia") is None:
        return None
    from kornia import augmentation as kornia

    jitter = kornia.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8)
    scale = (0.2 if name == "simclr" else 0.08, 1.0)
    mode = "bicubic" if name == "crop_flip" else "bilinear"
    crop = [kornia.RandomResizedCrop((size, size), scale, resample=mode), kornia.RandomHorizontalFlip()]
    grey = kornia.RandomGrayscale(p=0.2)
    steps: dict[str, list[nn.Module]] = {
        "crop_flip": crop,
        "simclr": [*crop, jitter, grey],
        "simclr_blur": [*crop, jitter, grey, kornia.RandomGaussianBlur((blur_kernel(size),) * 2, (0.1, 2.0), p=0.5)],
        "bias_con": [kornia.RandomRotation(20.0, resample="nearest", p=1.0), jitter],
    }
    sequence = nn.Sequential(*steps[name])
    return lambda batch: sequence(batch)


def images_per_second(change: Change | None, images: Tensor, calls: int = CALLS) -> float | None:
    if change is None:
        return None
    synchronise = torch.cuda.synchronize if images.is_cuda else lambda: None
    times = []
    for _ in range(calls + 2):
        synchronise()
        started = time.perf_counter()
        change(images)
        synchronise()
        times.append(time.perf_counter() - started)
    return len(images) / min(times[2:])


def measure(name: str, images: Tensor, size: int) -> dict[str, float | str | None]:
    generator = torch.Generator(images.device).manual_seed(0)
    view = augment.build_augmentation(name, tuple(images.shape[1:]), TrainOptions(crop_size=size))
    return {
        "augmentation": name,
        "shape": " x ".join(map(str, images.shape)),
        "ours": images_per_second(lambda batch: view(batch, generator), images),
        "kornia": images_per_second(kornia_transform(name, size), images),
        "torchvision": images_per_second(torchvision_transform(name, size), images, calls=4),
    }


def measure_parts(name: str, images: Tensor) -> None:
    generator = torch.Generator(images.device).manual_seed(0)
    for operation in find_modules(augment.__name__, "operations")[name].operations(TrainOptions()):
        rate = images_per_second(lambda batch, one=operation: one(batch, generator), images)
        print(f"  {type(operation).__name__:14}{len(images) / rate * 1e3:8.2f} ms")


def row(values: dict[str, float | str | None]) -> str:
    rates = [values[column] for column in ("ours", "kornia", "torchvision")]
    cells = ["not installed" if rate is None else f"{rate:,.0f}/s" for rate in rates]
    return f"{values['augmentation']:13}{values['shape']:20}" + "".join(f"{cell:>15}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs="+", default=[32, 28])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()  # as a trial does
    if not arguments.json:
        print(f"{'':33}{'ours':>15}{'kornia':>15}{'torchvision':>15}")
    for size in arguments.size:
        images = torch.rand(arguments.batch, 3, size, size, device=arguments.device)
        for name in NAMES:
            values = measure(name, images, size)
            print(json.dumps(values) if arguments.json else row(values), flush=True)
            if arguments.parts:
                measure_parts(name, images)


if __name__ == "__main__":
    main()
