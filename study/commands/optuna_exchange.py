"""Between Optuna's studies and ours: its dashboard on a search, and its trials as configurations to try first."""

import errno
import warnings
from collections.abc import Iterable
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from study.errors import UserError, did_you_mean
from study.files import check_output_path, write_output
from study.home.folder import StudyFolder
from study.spec.configuration import distinct_configurations, validate_configuration
from study.spec.load import check_and_complete_document
from study.spec.paper_readings import pop_readings
from study.spec.yaml_document import YamlDocument, apply_profile, edit_yaml, find_study_file, read_study_file
from study.text import pluralise, print_text


def serve_dashboard(folder: StudyFolder, port: int) -> None:
    """Show a study in optuna-dashboard on loopback until interrupted, also while it runs.

    Raises:
        UserError: the package is not there, the study has no search, or the port is taken.
    """
    try:
        from optuna_dashboard import wsgi
    except ImportError:
        raise UserError("--optuna: needs the extra `dashboard`: uv sync --extra dashboard") from None
    from study.ranking.optuna_storage import LedgerStorage

    if not folder.load_spec().search.space:
        raise UserError(f"{folder.name}: has no search that Optuna could show")
    page = wsgi(LedgerStorage(folder))
    ends = (f":{port}", "") if port == 80 else (f":{port}",)
    hosts = {f"{host}{end}" for host in ("127.0.0.1", "localhost") for end in ends}

    def only_from_here(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ.get("HTTP_HOST") in hosts:
            return page(environ, start)
        start("403 Forbidden", [("Content-Type", "text/plain")])  # a page of elsewhere whose name leads here
        return [b"open it as http://127.0.0.1"]

    try:
        server = make_server("127.0.0.1", port, only_from_here, handler_class=_QuietRequestHandler)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise UserError(f"--port {port}: {error.strerror}") from None
        raise UserError(f"--port {port}: taken on this machine; another one: --port {port + 1}") from None
    print_text(f"Optuna's dashboard of {folder.name}: http://127.0.0.1:{port} (Ctrl-C ends it)")
    with server, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Optuna warns of is not the user's to mend
        server.serve_forever()


class _QuietRequestHandler(WSGIRequestHandler):
    """Handler that prints no line for each request: an open page asks every few seconds."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def import_best_trials(storage: str, name: str, file: str, out: Path, top: int, renamed: Iterable[str]) -> list[str]:
    """Write a study file whose search tries the best configurations of a study of Optuna's first.

    Their values are not taken: other code measured them, perhaps on other data.

    Args:
        storage, name: of that study, see `study.ranking.optuna_storage.best_optuna_trials`.
        file: the study file that searches the same parameters, which `out` is made of.
        top: how many, at most.
        renamed: `NAME=KEY`, for parameters that are called neither as a searched key nor as its last part; `NAME=` for
            those that are left out.

    Returns:
        Sentences on what was read.

    Raises:
        UserError: one of them cannot be read, or a configuration is none of the file's search: says of each parameter
            which trial has it, what was given and what is allowed. Nothing was written then.
    """
    from study.ranking.optuna_storage import best_optuna_trials

    check_output_path(out)
    source = find_study_file(file)
    document = read_study_file(source)
    pop_readings(document)
    apply_profile(document, None)
    spec = check_and_complete_document(document)
    trials = best_optuna_trials(storage, name, top)
    parameters = {parameter for trial in trials for parameter in trial.params}
    keys = _keys_by_optuna_param(spec.space.domains, parameters, renamed)
    given = []
    for trial in trials:
        values = {keys[parameter]: value for parameter, value in trial.params.items() if parameter in keys}
        given.append(validate_configuration(spec.space, values, YamlDocument(f"{name}, trial {trial.number}", {})))
    enqueued = [dict(params) for params in distinct_configurations([*spec.search.enqueue, *given])]
    document.override_key("search.enqueue", enqueued, str(source))
    check_and_complete_document(document)
    with edit_yaml(source.read_text(encoding="utf-8"), width=120) as (tree, written):
        tree.setdefault("search", {})["enqueue"] = enqueued
    write_output(out, written.getvalue())
    return [
        *(f"{parameter} is {key}" for parameter, key in keys.items() if parameter != key),
        f"{out}: tried first are {pluralise(len(given), 'configuration')} of {name}, the best by its own values",
    ]


def _keys_by_optuna_param(space: Iterable[str], parameters: Iterable[str], renamed: Iterable[str]) -> dict[str, str]:
    """Return the searched key that each parameter of Optuna's stands for."""
    given, searched = dict(one.partition("=")[::2] for one in renamed), list(space)
    found: dict[str, str] = {}
    for parameter in sorted(parameters):
        if given.get(parameter) == "":
            del given[parameter]
            continue
        alike = [key for key in searched if parameter == key or parameter.rstrip("_") == key.partition(".")[2]]
        key = given.pop(parameter, alike[0] if len(alike) == 1 else "")
        if key not in searched:
            given_as = f"--rename {parameter}={key}: {key}" if key else parameter
            raise UserError(
                f"{given_as}: is not searched. {did_you_mean(key or parameter, searched)}Say which key it is by "
                f"--rename {parameter}=KEY; --rename {parameter}= leaves it out. Allowed: {', '.join(searched)}"
            )
        if twice := [other for other in found if found[other] == key]:
            raise UserError(f"{twice[0]} and {parameter} are both {key}. Say which key each is by --rename NAME=KEY")
        found[parameter] = key
    if given:
        raise UserError(f"--rename {next(iter(given))}: no such parameter. Allowed: {', '.join(found)}")
    return found
