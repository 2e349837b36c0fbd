"""The weights of a trial's networks in a file, safetensors."""

from pathlib import Path

from torch import nn

from study.files.whole import write_whole
from study.training.checkpoint import Unusable


def write(path: Path, networks: nn.Module) -> None:
    """Write them in one step: a reader sees the whole file or none."""
    from safetensors.torch import save

    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, save({name: tensor.contiguous() for name, tensor in networks.state_dict().items()}))


def read(path: Path, networks: nn.Module) -> None:
    """Take the weights that `write` wrote of such networks.

    Raises:
        Unusable: the file is missing, cut short or otherwise damaged, or of other networks.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        networks.load_state_dict(load_file(path))
    except (SafetensorError, OSError, RuntimeError) as error:
        does_not_fit = isinstance(error, RuntimeError)
        what = "does not fit these data or this version of study" if does_not_fit else "is damaged or cut short"
        raise Unusable(f"{path}: {what} ({' '.join(str(error).split())[:200]})") from None
