"""The description beside a model's weights: all that rebuilds its networks, and where they come from.

It is JSON, no code and no pickle. It holds the hash of the weights and its own: a file that was changed or cut short is
refused.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from study import files
from study.data import Facts, TableEncoding
from study.data.table_columns import ColumnEncoding
from study.errors import UserError
from study.files import safe_path_below, write_atomically
from study.metrics.worst_group import GroupCounts, WorstGroup, find_worst_group
from study.models import initial_weights
from study.training.config import TrialConfig

DESCRIPTION_FORMAT_VERSION, ENSEMBLE_FORMAT_VERSION = 1, 2
"""Version of the file's format, and of that of a model of several networks."""


@dataclass(frozen=True)
class ModelDescription:
    """A trained model.

    Attributes:
        config: complete `data`, `model`, `method` and `train` sections.
        facts: of its data.
        weights: name of the file with the weights beside this one, of an ensemble with those of its first network.
        weights_digest: SHA-256 of that file.
        told: plain values for people: study, seed, metrics, code, data fingerprint, origin of the configuration.
        other_weights: of an ensemble, the SHA-256 of the other networks' files, by name: its probabilities are the mean
            of its networks'.
        encoding: how the columns of a user's table became inputs; None for other data.
        frozen: `name`, `file` and `sha256` of the weights of the frozen network whose features it takes; None: there is
            none.
    """

    config: Mapping[str, Any]
    facts: Facts
    weights: str
    weights_digest: str
    told: Mapping[str, Any]
    encoding: TableEncoding | None = None
    frozen: Mapping[str, str] | None = None
    other_weights: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest_by_weights_file(self) -> Mapping[str, str]:
        """SHA-256 of the weights of each network, by the name of their file."""
        return {self.weights: self.weights_digest, **self.other_weights}

    @property
    def seeds_text(self) -> str:
        """Seed on which the model was trained, or those of an ensemble, as `6, 7, 8`."""
        return ", ".join(map(str, self.told.get("seeds") or [self.told["seed"]]))

    def frozen_network_file(self, folder: Path) -> Path | None:
        """Return the file of the frozen network's weights among a model's files; None: they are not inside."""
        if self.frozen is None:
            return None
        path = safe_path_below(folder, frozen_network_file_name(self.frozen))
        return path if path.exists() else None

    @contextmanager
    def use_frozen_network(self, folder: Path) -> Iterator[None]:
        """Have the frozen network's weights within the block: those among the model's files, else this machine's.

        Args:
            folder: of the model's files.

        Raises:
            UserError: they are missing (says how to get them), or are not those that the model was trained on.
        """
        if self.frozen is None:
            yield
            return
        section, inside = self.config["model"], self.frozen_network_file(folder)
        with nullcontext() if inside is None else initial_weights.use_weights_file(section, inside):
            now = initial_weights.describe_weights_file(section)
            if now["sha256"] != self.frozen["sha256"]:
                raise UserError(
                    f"the model takes features of {self.frozen['name']}, whose weights are not those here: sha256 was "
                    f"{self.frozen['sha256']}. Put the earlier file back"
                )
            yield

    @property
    def trial_config(self) -> TrialConfig:
        """Configuration that was trained."""
        return TrialConfig.from_document(self.config)

    @property
    def class_names_or_numbers(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the scores; their numbers where the data set names none."""
        return self.facts.class_names or tuple(map(str, range(self.facts.classes)))

    @property
    def worst_groups(self) -> WorstGroup | None:
        """Groups that the model serves worst, on the split that it is described on; None where that is not known."""
        if (counts := self.told.get("groups")) is not None:
            return find_worst_group(GroupCounts(**counts), self.facts.class_names, self.facts.bias_names)
        return None

    def write_file(self, path: Path) -> None:
        """Write the description to a file in one step."""
        version = ENSEMBLE_FORMAT_VERSION if self.other_weights else DESCRIPTION_FORMAT_VERSION
        values = {"format": version, **asdict(self)}
        digest = files.sha256_of_values(_plain_json_values(values))
        write_atomically(path, json.dumps({**values, "digest": digest}, indent=2))

    @classmethod
    def read_file(cls, path: Path) -> "ModelDescription":
        """Read a description.

        Raises:
            UserError: the file cannot be read, or it is of another version, damaged or changed.
        """
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            recorded_digest, version = values.pop("digest"), values.pop("format")
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UserError(f"{path}: is not a description of a model, or cut short") from None
        if version not in (DESCRIPTION_FORMAT_VERSION, ENSEMBLE_FORMAT_VERSION):
            reads = f"this version of study reads {DESCRIPTION_FORMAT_VERSION} and {ENSEMBLE_FORMAT_VERSION}"
            raise UserError(f"{path}: format {version}, {reads}. Update study")
        if recorded_digest != files.sha256_of_values({"format": version, **values}):
            raise UserError(f"{path}: was changed after it was written. Take the file that study train wrote")
        facts: dict[str, Any] = {key: _list_to_tuple(value) for key, value in values.pop("facts").items()}
        encoding = None
        if (told := values.pop("encoding", None)) is not None:
            encoding = tuple(ColumnEncoding(**{**of, "values": _list_to_tuple(of["values"])}) for of in told)
        return cls(facts=Facts(**facts), encoding=encoding, **values)


def frozen_network_file_name(frozen: Mapping[str, str]) -> str:
    """Return the name of the file of a frozen network's weights among a model's files."""
    return f"network-{frozen['sha256'][:16]}{Path(frozen['file']).suffix}"


def _list_to_tuple(value: Any) -> Any:
    """Return a list as the tuple that it was before JSON."""
    return tuple(map(_list_to_tuple, value)) if isinstance(value, list) else value


def _plain_json_values(values: Any) -> Any:
    """Return values as JSON gives them back: tuples as lists, keys as text."""
    return json.loads(json.dumps(values))
