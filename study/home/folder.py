"""The place of all state: one home folder with a folder per study, the MLflow database and its artifacts; and its form.

`STUDY_HOME` says where, `./studies` is the default. Nothing of a study lies outside its folder but its MLflow runs.
"""

import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from urllib.parse import unquote

from study import __version__, places
from study.errors import StudyNotFoundError, UserError, nearest
from study.files import PRIVATE, from_json, read_json, write_whole, writing
from study.home.ledger import Ledger
from study.spec import StudySpec, load_checked, load_resolved
from study.spec.load import check_name
from study.text import moment, typed
from study.training import function_loading

# The form that a home is in, told by its file `format`: which form, and which version of this package made it.
#
# A form is what older versions could not read or write: it counts up when the files of a home change so.

FORMAT = 2
"""The form that this version writes, and the one that it reads. Form 1 had ledgers without numbers and check values."""


def format_file(home: Path) -> Path:
    """The file with the form of a home."""
    return home / "format"


@dataclass(frozen=True)
class Form:
    """The content of that file."""

    format: int
    study: str


OURS = json.dumps({"format": FORMAT, "study": __version__})
"""The content that this version writes."""


def write_format(home: Path) -> None:
    """Tell the form of a home that is made, in one step; a home that tells it already keeps it.

    Raises:
        OSError: the home cannot be written; nothing is left behind.
    """
    path = format_file(home)
    if not path.exists():
        write_whole(path, OURS + "\n")


def check_format(home: Path) -> None:
    """Refuse a home, which need not exist, whose form is not the one that this version reads.

    Raises:
        UserError: names the version that made it; the file is damaged or unreadable, or missing
            although there are studies.
    """
    path = format_file(home)
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if any(home.glob("[!.]*/ledger.jsonl")):
            what = f"{home}: holds studies, and no file {path.name}"
            raise UserError(f"{what}. What study {__version__} writes there is {OURS}. {ANOTHER_HOME}") from None
        return
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    told = from_json(text, Form)
    if told is None:
        raise UserError(f"{path}: damaged. What study {__version__} writes there is {OURS}. {ANOTHER_HOME}")
    if told.format != FORMAT:
        theirs = "" if told.study == __version__ else f"Use study {told.study} there. "
        raise UserError(
            f"{home}: is in form {told.format}, which study {told.study} made; this is study {__version__}, which "
            f"reads form {FORMAT}. {theirs}{ANOTHER_HOME}"
        )


# The home and its studies.

ANOTHER_HOME = "Another home: STUDY_HOME=..."

"""The beginning of the message that a home has no study of a name."""


@dataclass(frozen=True)
class StudyFolder:
    """The files of one study."""

    path: Path

    @property
    def tracking_uri(self) -> str:
        """The MLflow of its home."""
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
    def report(self) -> Path:
        return self.path / "report"

    @property
    def report_page(self) -> Path:
        return self.report / "report.html"

    @property
    def best_file(self) -> Path:
        return self.path / "best.yaml"

    @property
    def tracking_file(self) -> Path:
        """The file that says how far the ledger is in MLflow."""
        return self.path / "tracking.json"

    @property
    def requests(self) -> Path:
        """The folder of what users ask of its driver, see `study.home.driver_requests`."""
        return self.path / "requests"

    @property
    def scratch(self) -> Path:
        """Ray Tune's own files; nothing is read from them."""
        return self.path / "ray"

    @property
    def models(self) -> Path:
        """Weights of trials on fresh seeds and of final ones, and what rebuilds their networks."""
        return self.path / "models"

    def model_file(self, trial: int, epoch: int | None = None) -> Path:
        """Weights that such a trial ended with, or that it had after an epoch of `train.keep_epochs`."""
        behind = "" if epoch is None else f"-epoch-{epoch:05d}"
        return self.models / f"trial-{trial:05d}{behind}.safetensors"

    def description_file(self, trial: int) -> Path:
        """The file with what rebuilds the networks of a final trial's weights."""
        return self.model_file(trial).with_suffix(".json")

    @property
    def card_file(self) -> Path:
        """The model card of a final training."""
        return self.path / "model_card.md"

    @property
    def checkpoints(self) -> Path:
        """States that trials go on from: of those that run or are to run again, and those behind the last epoch that
        `resources.keep_checkpoints` asks for."""
        return self.path / "checkpoints"

    def checkpoint_file(self, trial: int) -> Path:
        """State of a trial that runs."""
        return self.checkpoints / f"trial-{trial:05d}.pt"

    def end_file(self, trial: int) -> Path:
        """State of a trial behind its last epoch, which it can be extended from."""
        return self.checkpoints / f"trial-{trial:05d}-end.pt"

    def error_file(self, trial: int) -> Path:
        """Traceback of a trial that failed."""
        return self.path / "errors" / f"trial-{trial:05d}.txt"

    def write_error(self, trial: int, text: str) -> None:
        """Keep a failed trial's traceback."""
        self.error_file(trial).parent.mkdir(exist_ok=True)
        self.error_file(trial).write_text(text, encoding="utf-8", errors="backslashreplace")

    def output_file(self, trial: int) -> Path:
        """What a trial of a training function of the user's own printed."""
        return self.path / "output" / f"trial-{trial:05d}.txt"

    def own_runs(self, trial: int) -> Path:
        """The folder in which MLflow keeps the runs that such a trial's function logs itself."""
        return self.path / "own_runs" / f"trial-{trial:05d}"

    def write_spec(self, spec: StudySpec) -> None:
        """Write the resolved study file in one step."""
        write_whole(self.spec_file, spec.to_yaml())

    def spec(self) -> StudySpec:
        """The study as it was resolved and checked when it was created."""
        return load_resolved(self.spec_file, self.name)

    def checked_spec(self) -> StudySpec:
        """The same, checked again: before trials run, as methods and data may have changed since.

        Raises:
            UserError: says everything that is wrong.
        """
        return load_checked(self.spec_file, self.name)


@dataclass(frozen=True)
class Home:
    """The home folder."""

    path: Path

    @classmethod
    def locate(cls) -> "Home":
        """The folder that `STUDY_HOME` names, else `studies` in the working folder. It need not exist yet.

        Behind a link `..` is the parent of where the link leads, for the system but not for MLflow's address of the
        database: such a path is resolved here. Others stay as given: what a link leads to may differ between nodes.
        """
        path = places.home()
        return cls(path.resolve() if ".." in path.parts else path)

    @property
    def tracking_uri(self) -> str:
        """`MLFLOW_TRACKING_URI` where set, else SQLite in this home."""
        return os.environ.get("MLFLOW_TRACKING_URI") or address_of(self.database)

    @property
    def database(self) -> Path:
        """The file in which MLflow of a home of its own keeps its runs."""
        return self.path / "mlflow.db"

    @property
    def owns_tracking(self) -> bool:
        """Return whether MLflow is the SQLite of this home, not one from elsewhere."""
        return not os.environ.get("MLFLOW_TRACKING_URI")

    @property
    def artifacts(self) -> Path:
        """The folder in which MLflow keeps artifacts of a home of its own."""
        return self.path / "artifacts"

    @property
    def suites(self) -> Path:
        """The folder of what is remembered of suites, whose studies are among the others."""
        return self.path / "suites"

    def studies(self) -> list[StudyFolder]:
        """Every study of this home, the newest last; what lies elsewhere and is only linked to is none.

        Raises:
            UserError: the home is of another form.
        """
        if not self.path.is_dir():
            return []
        check_format(self.path)
        paths = (path for path in self.path.iterdir() if not path.name.startswith("."))
        candidates = (StudyFolder(path) for path in paths if not path.is_symlink())
        folders = [folder for folder in candidates if folder.ledger_file.is_file() and folder.spec_file.is_file()]
        return sorted(folders, key=lambda folder: (folder.spec_file.stat().st_mtime, folder.name))

    def find(self, name: str) -> StudyFolder:
        """The folder of an existing study.

        Raises:
            StudyNotFoundError: there is none; says which there are.
            UserError: the name cannot be a study's, or the home is of another form.
        """
        check_name(name)
        self._check_no_link(name)
        names = [folder.name for folder in self.studies()]
        if name not in names:
            there = f"Studies there: {', '.join(names)}" if names else "There is no study there yet"
            raise StudyNotFoundError(f"{name}: no such study in {self.path}. {nearest(name, names)}{there}")
        return StudyFolder(self.path / name)

    def check_new(self, name: str) -> None:
        """Refuse a name that is taken, by a study or by the home itself.

        Raises:
            UserError: says how to go on with that study, or to run another one beside it; or the name cannot be a
                study's, or the home is of another form, or it cannot be written.
        """
        check_name(name)
        check_format(self.path)
        self._check_no_link(name)
        if self.path / name in (self.database, self.artifacts, self.suites, format_file(self.path)):
            raise UserError(f"{name}: is the home's own in {self.path}. Another name: --name {self._free_name(name)}")
        if (self.path / name).exists():
            raise UserError(
                f"{name}: exists already in {self.path}. Go on with it: study resume {name}. "
                f"Run it anew under another name: --name {self._free_name(name)}"
            )
        self.check_writable()

    def check_writable(self) -> None:
        """Refuse a home in which a study, or its runs in the home's own MLflow, cannot be written, as another user's.

        Raises:
            UserError: says what cannot be, and why.
        """
        for place in (self.path, *((self.database, self.artifacts) if self.owns_tracking else ())):
            if why := places.obstacle(place, is_file=place == self.database):
                raise UserError(f"{place}: cannot be written: {why}. {ANOTHER_HOME}")

    def create(self, spec: StudySpec, function: bytes | None = None) -> StudyFolder:
        """Make the folder of a new study, whole or not at all.

        Args:
            function: the pickled training function of the user's own that its trials run, if they run one.

        Raises:
            UserError: a study of that name exists, or the home cannot be written.
            OSError: the disk is full, or fails.
        """
        self.check_new(spec.name)
        folder = StudyFolder(self.path / spec.name)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_format(self.path)
            draft = Path(tempfile.mkdtemp(prefix=f".{spec.name}-", dir=self.path))
            try:
                StudyFolder(draft).write_spec(spec)
                if function is not None:
                    write_whole(draft / function_loading.FILE, function, PRIVATE)
                Ledger.create(draft / folder.ledger_file.name)
                draft.chmod(0o755)
                draft.rename(folder.path)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
        except OSError as error:
            self.check_new(spec.name)  # another process may have made it meanwhile
            with writing(self.path, ANOTHER_HOME):
                raise error
        return folder

    def _check_no_link(self, name: str) -> None:
        """Refuse a link by a study's name: what it leads to would be renamed, removed or written in its place."""
        if (path := self.path / name).is_symlink():
            raise UserError(
                f"{name}: is a symbolic link in {self.path}, to {os.readlink(path)}; a study is a folder there. Move "
                "that folder in the link's place"
            )

    def _free_name(self, name: str) -> str:
        free = (f"{name}-{index}" for index in range(2, 10_000))
        return next(name for name in free if not os.path.lexists(self.path / name))


# The address of an SQLite database, as SQLAlchemy and MLflow read it, and the path in it: the one place for both.


PLAIN, ESCAPED = "sqlite:///", "sqlite+pysqlite:///"


def address_of(path: Path) -> str:
    """The address of a database file, whatever characters its path holds.

    SQLAlchemy ends the path at a `?` and decodes what follows a `%`, so both are escaped. Behind `sqlite:///` MLflow
    would take the escaped path for the real one and make its folders, beside the right ones; it does not do so where
    the address names the driver, too.
    """
    plain = str(path)
    escaped = plain.replace("%", "%25").replace("?", "%3F")
    return f"{PLAIN if escaped == plain else ESCAPED}{escaped}"


def path_of(address: str) -> Path | None:
    """The absolute path of the database file at an address; None where it is not an SQLite file, is relative to the
    working folder, or comes with options."""
    prefix = next((prefix for prefix in (PLAIN, ESCAPED) if address.startswith(prefix)), None)
    if prefix is None or "?" in address:
        return None
    path = Path(unquote(address.removeprefix(prefix)))
    return path if path.is_absolute() else None


# Where a study folder came from that was brought from a cluster: a file in it.


@dataclass(frozen=True)
class Fetched:
    """The origin of a study folder.

    Attributes:
        address: of the cluster's head.
        name: the study's there.
        job, state: its newest driver, and how that was; empty: the head knew of none.
        at: when it was brought, in seconds since the epoch.
        host, node, folder: where its folder lies on the cluster: the machine, Ray's id of it, the path there.
        python: the interpreter of its drivers.
        events: how many events were brought.
    """

    address: str
    name: str
    job: str
    state: str
    at: float
    host: str
    node: str
    folder: str
    python: str
    events: int

    @property
    def ran(self) -> bool:
        """Return whether a driver was to be expected to go on with it there."""
        return self.state in ("pending", "running")

    @property
    def when(self) -> str:
        return moment(self.at, UTC)

    def command(self, local: str) -> str:
        """Return what brings the rest of it, where it is called `local` here."""
        renamed = () if local == self.name else ("--name", local)
        return typed("fetch", self.name, "--address", self.address, *renamed)

    def words(self, local: str) -> str:
        """A line for people."""
        ran = ", while it ran there" if self.ran else ""
        return f"from {self.address} on {self.when}{ran}. What is new there: {self.command(local)}"

    def save(self, folder: Path) -> None:
        write_whole(_fetched_file(folder), json.dumps(asdict(self), indent=2) + "\n")


def _fetched_file(folder: Path) -> Path:
    """The file in which a study's folder says where it came from."""
    return folder / "fetched.json"


def fetched(folder: StudyFolder) -> Fetched | None:
    """Return where a study came from; None: it was made here.

    Raises:
        UserError: the file is damaged.
    """
    path = _fetched_file(folder.path)
    found = read_json(path, Fetched)
    if found is None and path.exists():
        raise UserError(f"{path}: damaged. Without it the study is taken for one that was made here")
    return found
