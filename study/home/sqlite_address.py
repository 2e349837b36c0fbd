"""The address of an SQLite database, as SQLAlchemy and MLflow read it, and the path in it: the one place for both."""

from pathlib import Path
from urllib.parse import unquote

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
