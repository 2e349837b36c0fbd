"""The addresses of MLflow's pages: its list of experiments, a run, and the views of an experiment."""

from urllib.parse import quote

from study.text import redact_credentials

TRAINING_MODE_QUERY = "workflowType=machine_learning"
"""MLflow's mode for training, in the addresses of its UI after the `#`; by itself it opens in one for language models.
`tests/tracking/test_pages.py` says what else of MLflow these addresses depend on."""

RESULTS_VIEW_KEY, SEARCH_VIEW_KEY, FINAL_VIEW_KEY = "results", "study", "final"
"""Keys of the views of an experiment that links open: a row per result, the trials of a search, those of final
trainings."""


def experiments_page_url(uri: str) -> str:
    """Return the address of a server's list of experiments, without a password that may be in the server's address."""
    return f"{redact_credentials(uri).rstrip('/')}/#/experiments?{TRAINING_MODE_QUERY}"


def run_page_url(uri: str, experiment: str, run_id: str, artifact: str = "") -> str:
    """Return the address of a run, or of one of its artifacts, as `report/report.html`.

    Args:
        uri: of the server; empty: the server that the link itself is read on.
    """
    server = f"{redact_credentials(uri).rstrip('/')}/" if uri else ""
    page = f"{server}#/experiments/{experiment}/runs/{run_id}"
    return f"{page}{f'/artifacts/{quote(artifact)}' if artifact else ''}?{TRAINING_MODE_QUERY}"


def trials_page_url(experiment: str, is_final: bool) -> str:
    """Return the address, on the server that shows the link, of an experiment's search, or of its final trainings."""
    return view_url(experiment, FINAL_VIEW_KEY if is_final else SEARCH_VIEW_KEY)


def view_url(experiment: str, key: str) -> str:
    """Return the address, on the server that shows the link, of a view of an experiment."""
    return f"#/experiments/{experiment}/runs?viewStateShareKey={key}&{TRAINING_MODE_QUERY}"


def is_mlflow_server(uri: str) -> bool:
    """Return whether an MLflow has pages: a server, not a database."""
    return uri.startswith(("http://", "https://"))
