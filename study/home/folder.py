"""The place of all state: one home folder with a folder per study, MLflow's database and artifacts; and its format.

`STUDY_HOME` says where, `./studies` is the default. Nothing of a study is outside its folder but its MLflow runs.
"""

import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

from pydantic import Field

from study import __version__, writable_folders
from study.errors import StudyNotFoundError, UserError, suggest_or_list
from study.files import PRIVATE_FILE_MODE, as_user_error_if_unwritable, parse_json, read_json_or_none, write_atomically
from study.home.ledger import Ledger
from study.spec import StudySpec, load_resolved, load_resolved_and_check
from study.spec.load import check_study_name
from study.spec.yaml_document import STUDY_FILE_SUFFIXES, read_study_file
from study.text import format_time, study_command
from study.training import function_loading

HOME_FORMAT_VERSION = 2
"""Version of a home's format that this version of the package writes and reads. It counts up when the files of a home
change so that older versions could not read or write them."""


def home_format_file(home: Path) -> Path:
    """Return the file with the format of a home."""
    return home / "format"


@dataclass(frozen=True)
class HomeFormat:
    """The content of that file: the format, and the version of this package that made it."""

    format: int
    study: str


HOME_FORMAT_JSON = json.dumps({"format": HOME_FORMAT_VERSION, "study": __version__})
"""Content that this version writes."""


def write_home_format(home: Path) -> None:
    """Write the format of a new home, in one step; a home that has one keeps it.

    Raises:
        OSError: the home cannot be written; nothing is left behind.
    """
    path = home_format_file(home)
    if not path.exists():
        write_atomically(path, HOME_FORMAT_JSON + "\n")


def check_home_format(home: Path) -> None:
    """Refuse a home, which need not exist, whose format is not the one that this version reads.

    Raises:
        UserError: names the version that made it; the file is damaged or unreadable, or missing although there are
            studies.
    """
    path = home_format_file(home)
    remedy = f"What study {__version__} writes there is {HOME_FORMAT_JSON}. {ANOTHER_HOME_REMEDY}"
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if any(home.glob("[!.]*/ledger.jsonl")):
            raise UserError(f"{home}: holds studies, and no file {path.name}. {remedy}") from None
        return
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    told = parse_json(text, HomeFormat)
    if told is None:
        raise UserError(f"{path}: damaged. {remedy}")
    if told.format != HOME_FORMAT_VERSION:
        theirs = "" if told.study == __version__ else f"Use study {told.study} there. "
        raise UserError(
            f"{home}: is in form {told.format}, which study {told.study} made; this is study {__version__}, which "
            f"reads form {HOME_FORMAT_VERSION}. {theirs}{ANOTHER_HOME_REMEDY}"
        )


ANOTHER_HOME_REMEDY = "Another home: STUDY_HOME=..."
"""Remedy where a home cannot be used."""


@dataclass(frozen=True)
class StudyFolder:
    """The files of one study."""

    path: Path

    @property
    def tracking_uri(self) -> str:
        """URI of the MLflow of its home."""
        return Home(self.path.parent).tracking_uri

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def spec_file(self) -> Path:
        """The resolved study file."""
        return self.path / "study.yaml"

    @property
    def ledger_file(self) -> Path:
        return self.path / "ledger.jsonl"

    @property
    def report_folder(self) -> Path:
        return self.path / "report"

    @property
    def report_page(self) -> Path:
        return self.report_folder / "report.html"

    @property
    def best_file(self) -> Path:
        return self.path / "best.yaml"

    @property
    def tracking_state_file(self) -> Path:
        """File that says how far the ledger is in MLflow."""
        return self.path / "tracking.json"

    @property
    def requests_folder(self) -> Path:
        """Folder of users' requests to its driver, see `study.home.driver_requests`."""
        return self.path / "requests"

    @property
    def tune_folder(self) -> Path:
        """Folder of Ray Tune's own files; nothing is read from them."""
        return self.path / "ray"

    @property
    def models_folder(self) -> Path:
        """Folder of weights of trials on fresh seeds and of final ones, and of what rebuilds their networks."""
        return self.path / "models"

    def model_file(self, trial: int) -> Path:
        """Return the file of weights that such a trial ended with."""
        return self.models_folder / f"trial-{trial:05d}.safetensors"

    def list_model_files(self) -> list[Path]:
        """List the files of weights that there are, of whatever trials."""
        return sorted(self.models_folder.glob("trial-*[0-9].safetensors"))

    def model_description_file(self, trial: int) -> Path:
        """Return the file with what rebuilds the networks of a final trial's weights."""
        return self.model_file(trial).with_suffix(".json")

    @property
    def ensemble_description_file(self) -> Path:
        """File with what rebuilds the networks of all seeds of a final training, as one model."""
        return self.models_folder / "ensemble.json"

    @property
    def model_card_file(self) -> Path:
        """The model card of a final training."""
        return self.path / "model_card.md"

    @property
    def checkpoints_folder(self) -> Path:
        """Folder of the states of trials that run or are to run again."""
        return self.path / "checkpoints"

    def checkpoint_file(self, trial: int) -> Path:
        """Return the file of a running trial's state."""
        return self.checkpoints_folder / f"trial-{trial:05d}.pt"

    def error_file(self, trial: int) -> Path:
        """Return the file of a failed trial's traceback."""
        return self.path / "errors" / f"trial-{trial:05d}.txt"

    def write_traceback(self, trial: int, text: str) -> None:
        """Write a failed trial's traceback."""
        self.error_file(trial).parent.mkdir(exist_ok=True)
        self.error_file(trial).write_text(text, encoding="utf-8", errors="backslashreplace")

    def output_file(self, trial: int) -> Path:
        """Return the file of what a trial of a user's own training function printed."""
        return self.path / "output" / f"trial-{trial:05d}.txt"

    def trial_mlflow_folder(self, trial: int) -> Path:
        """Return the folder in which MLflow keeps the runs that such a trial's function logs itself."""
        return self.path / "own_runs" / f"trial-{trial:05d}"

    def write_spec(self, spec: StudySpec) -> None:
        """Write the resolved study file in one step."""
        write_atomically(self.spec_file, spec.to_yaml())

    def load_spec(self) -> StudySpec:
        """Return the study as it was resolved and checked when it was created."""
        return load_resolved(self.spec_file, self.name)

    def load_checked_spec(self) -> StudySpec:
        """Return the study, checked again before trials run, as methods and data may have changed since it was created.

        Raises:
            UserError: says everything that is wrong.
        """
        return load_resolved_and_check(self.spec_file, self.name)


@dataclass(frozen=True)
class Home:
    """The home folder."""

    path: Path

    @classmethod
    def locate(cls) -> "Home":
        """Return the home that `STUDY_HOME` names, else `studies` in the working folder. It need not exist yet.

        After a link `..` is the parent of where the link leads, for the system but not for MLflow's address of the
        database: such a path is resolved here. Others stay as given: what a link leads to may differ between nodes.
        """
        path = writable_folders.study_home_path()
        return cls(path.resolve() if ".." in path.parts else path)

    @property
    def tracking_uri(self) -> str:
        """`MLFLOW_TRACKING_URI` where set, else SQLite in this home."""
        return os.environ.get("MLFLOW_TRACKING_URI") or sqlite_uri(self.database_file)

    @property
    def database_file(self) -> Path:
        """File in which MLflow of a home of its own keeps its runs."""
        return self.path / "mlflow.db"

    @property
    def uses_own_mlflow(self) -> bool:
        """Whether MLflow is the SQLite of this home, not one from elsewhere."""
        return not os.environ.get("MLFLOW_TRACKING_URI")

    @property
    def artifacts_folder(self) -> Path:
        """Folder in which MLflow keeps artifacts of a home of its own."""
        return self.path / "artifacts"

    @property
    def suites_folder(self) -> Path:
        """Folder of what is remembered of suites, whose studies are among the others."""
        return self.path / "suites"

    def list_studies(self) -> list[StudyFolder]:
        """Return every study of this home, the newest last; a link to a study elsewhere is none.

        Raises:
            UserError: the home is of another format.
        """
        if not self.path.is_dir():
            return []
        check_home_format(self.path)
        paths = (path for path in self.path.iterdir() if not path.name.startswith("."))
        candidates = (StudyFolder(path) for path in paths if not path.is_symlink())
        folders = [folder for folder in candidates if folder.ledger_file.is_file() and folder.spec_file.is_file()]
        return sorted(folders, key=lambda folder: (folder.spec_file.stat().st_mtime, folder.name))

    def find_study(self, name: str) -> StudyFolder:
        """Return the folder of an existing study.

        Raises:
            StudyNotFoundError: there is none; says which there are.
            UserError: the name cannot be a study's, or the home is of another format.
        """
        self._refuse_study_file_as_name(name)
        check_study_name(name)
        self._refuse_symlink(name)
        names = [folder.name for folder in self.list_studies()]
        if name not in names:
            there = suggest_or_list(name, names[::-1], "Studies there", "study list") if names else "None is there yet"
            raise StudyNotFoundError(f"{name}: no such study in {self.path}. {there}")
        return StudyFolder(self.path / name)

    def study_or_none(self, name: str | None) -> StudyFolder | None:
        """Return the folder of a study; None where there is none of this name."""
        return next((folder for folder in self.list_studies() if folder.name == name), None)

    def check_name_is_free(self, name: str, changed: str = "") -> None:
        """Refuse a name that is taken, by a study or by the home itself.

        Args:
            changed: what differs from what the study of that name began with; empty: nothing, or that is not known.

        Raises:
            UserError: says how to go on with that study, or to run another one beside it; or the name cannot be a
                study's, or the home is of another format, or it cannot be written.
        """
        check_study_name(name)
        check_home_format(self.path)
        self._refuse_symlink(name)
        own_files = (self.database_file, self.artifacts_folder, self.suites_folder, home_format_file(self.path))
        if self.path / name in own_files:
            raise UserError(f"{name}: is the home's own in {self.path}. Another name: --name {self._unused_name(name)}")
        if (self.path / name).exists():
            differs = f" What is given now differs from what {name} began with: {changed}." if changed else ""
            anew, as_began = ("it as it is now", " as it began") if changed else ("it anew", "")
            raise UserError(
                f"{name}: exists already in {self.path}.{differs} Go on with it{as_began}: study resume {name}. "
                f"Run {anew} under another name: --name {self._unused_name(name)}"
            )
        self.check_writable()

    def check_writable(self) -> None:
        """Refuse a home in which a study, or its runs in the home's own MLflow, cannot be written, as another user's.

        Raises:
            UserError: says what cannot be, and why.
        """
        for place in (self.path, *((self.database_file, self.artifacts_folder) if self.uses_own_mlflow else ())):
            if why := writable_folders.why_unwritable(place, is_file=place == self.database_file):
                raise UserError(f"{place}: cannot be written: {why}. {ANOTHER_HOME_REMEDY}")

    def create_study(self, spec: StudySpec, function: bytes | None = None) -> StudyFolder:
        """Make the folder of a new study, whole or not at all.

        Args:
            function: the user's pickled training function that its trials run, if they run one.

        Raises:
            UserError: a study of that name exists, or the home cannot be written.
            OSError: the disk is full, or fails.
        """
        self.check_name_is_free(spec.name)
        folder = StudyFolder(self.path / spec.name)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_home_format(self.path)
            draft = Path(tempfile.mkdtemp(prefix=f".{spec.name}-", dir=self.path))
            try:
                StudyFolder(draft).write_spec(spec)
                if function is not None:
                    write_atomically(draft / function_loading.PICKLED_FUNCTION_FILE, function, PRIVATE_FILE_MODE)
                Ledger.create(draft / folder.ledger_file.name)
                draft.chmod(0o755)
                draft.rename(folder.path)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
        except OSError as error:
            self.check_name_is_free(spec.name)  # another process may have made it meanwhile
            with as_user_error_if_unwritable(self.path, ANOTHER_HOME_REMEDY):
                raise error
        return folder

    def _refuse_study_file_as_name(self, given: str) -> None:
        """Refuse a study file where the name of a study is wanted, and say which study that is."""
        path = Path(given)
        if path.suffix not in STUDY_FILE_SUFFIXES or self.study_or_none(given):
            return
        meant = [path.stem, path.parent.name]  # studies/k3/best.yaml is of k3
        with suppress(UserError):
            if path.is_file():
                meant.insert(0, str(read_study_file(path).values.get("name")))
        why = "a study file; what is wanted is the name of a study"
        if folder := next((folder for each in meant if (folder := self.study_or_none(each))), None):
            raise StudyNotFoundError(f"{given}: {why}: {folder.name}")
        if path.is_file():
            raise StudyNotFoundError(f"{given}: {why}, and none of {self.path} began with it: study run {given}")

    def _refuse_symlink(self, name: str) -> None:
        """Refuse a link with a study's name: its target would be renamed, removed or written instead."""
        if (path := self.path / name).is_symlink():
            raise UserError(
                f"{name}: is a symbolic link in {self.path}, to {os.readlink(path)}; a study is a folder there. Move "
                "that folder in the link's place"
            )

    def _unused_name(self, name: str) -> str:
        free = (f"{name}-{index}" for index in range(2, 10_000))
        return next(name for name in free if not os.path.lexists(self.path / name))


SQLITE_PREFIX, ESCAPED_SQLITE_PREFIX = "sqlite:///", "sqlite+pysqlite:///"


def sqlite_uri(path: Path) -> str:
    """Return the address of a database file, whatever characters its path holds.

    SQLAlchemy ends the path at a `?` and decodes what follows a `%`, so both are escaped. After `sqlite:///` MLflow
    would take the escaped path for the real one and make its folders, beside the right ones; it does not do so where
    the address names the driver, too.
    """
    plain = str(path)
    escaped = plain.replace("%", "%25").replace("?", "%3F")
    return f"{SQLITE_PREFIX if escaped == plain else ESCAPED_SQLITE_PREFIX}{escaped}"


def sqlite_path(address: str) -> Path | None:
    """Return the absolute path of the database file at an address.

    None where it is not an SQLite file, is relative to the working folder, or comes with options.
    """
    prefix = next((prefix for prefix in (SQLITE_PREFIX, ESCAPED_SQLITE_PREFIX) if address.startswith(prefix)), None)
    if prefix is None or "?" in address:
        return None
    path = Path(unquote(address.removeprefix(prefix)))
    return path if path.is_absolute() else None


@dataclass(frozen=True)
class FetchOrigin:
    """The origin of a study folder that was downloaded from a cluster, kept in a file in it.

    Attributes:
        address: of the cluster's head.
        name: of the study there.
        job, state: its newest driver, and how that was; empty: the head knew of none.
        downloaded_at: when it was downloaded, in seconds since the epoch.
        host, node, folder: where its folder is on the cluster: the machine, Ray's id of it, the path there.
        python: the interpreter of its drivers.
        events: how many events were downloaded.
    """

    address: str
    name: str
    job: str
    state: str
    downloaded_at: Annotated[float, Field(alias="at")]  # as files of all versions have it
    host: str
    node: str
    folder: str
    python: str
    events: int

    @property
    def was_running(self) -> bool:
        """Whether a driver was to go on with it there."""
        return self.state in ("pending", "running")

    @property
    def download_time_text(self) -> str:
        return format_time(self.downloaded_at, UTC)

    def fetch_command(self, local: str) -> str:
        """Return the command that downloads the rest of it, where it is called `local` here."""
        renamed = () if local == self.name else ("--name", local)
        return study_command("fetch", self.name, "--address", self.address, *renamed)

    def download_summary(self, local: str) -> str:
        """Return a line about the origin, for people."""
        ran = ", while it ran there" if self.was_running else ""
        return f"from {self.address} on {self.download_time_text}{ran}. What is new there: {self.fetch_command(local)}"

    def save(self, folder: Path) -> None:
        """Write it into a study's folder, by the names that files of all versions have."""
        values = asdict(self)
        entry = {"at": values.pop("downloaded_at"), **values}
        write_atomically(_fetch_origin_file(folder), json.dumps(entry, indent=2) + "\n")


def _fetch_origin_file(folder: Path) -> Path:
    """Return the file in which a study's folder says where it came from."""
    return folder / "fetched.json"


def read_fetch_origin(folder: StudyFolder) -> FetchOrigin | None:
    """Return where a study came from; None: it was made here.

    Raises:
        UserError: the file is damaged.
    """
    path = _fetch_origin_file(folder.path)
    found = read_json_or_none(path, FetchOrigin)
    if found is None and path.exists():
        raise UserError(f"{path}: damaged. Without it the study is taken for one that was made here")
    return found
