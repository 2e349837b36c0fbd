"""Small files, in the official layouts, of every data set with bias labels."""

from pathlib import Path

import numpy as np
from data_files import compas_row, write_adult, write_cifar10, write_compas, write_mnist
from pictures import picture

from study.data.sets.listed_images import CELEBA_ATTRIBUTES

SIZE = (4, 4)


def write_biased(root: Path) -> None:
    """Four in five samples are aligned, wherever the layout leaves it open."""
    random = np.random.default_rng(0)

    def pair(index: int) -> tuple[int, int]:
        target = index % 2
        return target, target if random.random() < 0.8 else 1 - target

    write_mnist(root, 40, 10)
    write_cifar10(root, 8)
    write_adult(root, 60)
    write_compas(root, [compas_row(("African-American", "Caucasian")[pair(index)[1]], index) for index in range(200)])
    _write_drawn(root)
    _write_lists(root, pair)
    for index in range(240):
        target, bias = pair(index)
        kind = "align" if target == bias else "conflict"
        place = (f"0.5pct/{kind}/{target}", f"0.5pct/{kind}/{target}", "0.5pct/valid", "test")[index // 2 % 4]
        picture(root / f"bffhq/{place}/{index}_{target}_{bias}.png", index, SIZE)


def _write_drawn(root: Path) -> None:
    lists: dict[str, list[str]] = {"bright": [], "dark": []}
    for index in range(240):
        face = f"{(20, 50)[index % 2]}_{index // 2 % 2}_{index // 4 % 2}_{index:017d}.jpg.chip.jpg"
        picture(root / "UTKFace" / face, index, SIZE)
        animal = f"{('cat', 'dog')[index % 2]}.{index}.jpg"
        picture(root / "dogs_and_cats/train" / animal, index, SIZE)
        lists[("bright", "dark")[index // 2 % 2]].append(animal)
    for colour, names in lists.items():
        (root / f"dogs_and_cats/list_{colour}.txt").write_text("\n".join(names) + "\n")


def _write_lists(root: Path, pair) -> None:  # type: ignore[no-untyped-def]
    birds = ["img_id,img_filename,y,split,place,place_filename"]
    attributes, parts = ["240", " ".join(CELEBA_ATTRIBUTES)], []
    mine = ["file,target,bias,part,number"]
    for index in range(240):
        (target, bias), part = pair(index), index // 2 % 4
        birds.append(f"{index},{index}.jpg,{target},{max(0, part - 1)},{bias},x")
        picture(root / f"waterbird_complete95_forest2water2/{index}.jpg", index, SIZE)
        signs = {"Attractive": 2 * target - 1, "Male": 2 * bias - 1}
        attributes.append(f"{index}.jpg " + " ".join(str(signs.get(name, 1)) for name in CELEBA_ATTRIBUTES))
        parts.append(f"{index}.jpg {max(0, part - 1)}")
        picture(root / f"celeba/img_align_celeba/{index}.jpg", index, SIZE)
        mine.append(f"{index}.png,{('cat', 'dog')[target]},{bias},{('train', 'train', 'val', 'test')[part]},{index}")
        picture(root / f"mine/{index}.png", index, SIZE)
    (root / "waterbird_complete95_forest2water2/metadata.csv").write_text("\n".join(birds) + "\n")
    (root / "celeba/list_attr_celeba.txt").write_text("\n".join(attributes) + "\n")
    (root / "celeba/list_eval_partition.txt").write_text("\n".join(parts) + "\n")
    (root / "mine/labels.csv").write_text("\n".join(mine) + "\n")
