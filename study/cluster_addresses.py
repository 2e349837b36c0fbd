"""Addresses of Ray clusters: which are allowed, and that a cluster elsewhere needs a token."""

import ipaddress
import os
import re
from urllib.parse import urlsplit

from study.errors import UserError
from study.upstream.ray_token import MIN_TOKEN_CHARACTERS, find_token, pass_token_to_ray

LOOPBACK = "127.0.0.1"


HOST_PORT_PATTERN = re.compile(r"(?P<host>[A-Za-z0-9.\-_]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")


def check_cluster_address(address: str) -> None:
    """Refuse what is not a cluster's address for a driver within its network.

    Raises:
        UserError: it is another kind of address, or a cluster elsewhere without a token.
    """
    if address == "auto":
        pass_token_to_ray()
        return
    if address.startswith(("http://", "https://")):
        raise UserError(
            f"--address {address}: is the address of Ray's jobs. To run a study there: study submit --address ..."
        )
    match = HOST_PORT_PATTERN.fullmatch(address)
    if not match or not 0 < int(match["port"]) < 65536:
        raise UserError(f"--address {address}: allowed: auto, HOST:PORT (as 10.0.0.1:6379)")
    check_cluster_token(match["host"])


def check_jobs_address(address: str) -> None:
    """Refuse what is not an address of Ray's jobs.

    Raises:
        UserError: it is another kind of address, or a cluster elsewhere without a token.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.path not in ("", "/"):
        raise UserError(f"--address {address}: allowed: http://HOST:PORT of the head's dashboard (as http://head:8265)")
    check_cluster_token(parts.hostname)


def check_cluster_token(host: str) -> None:
    """Refuse a cluster elsewhere that no token guards: whoever reaches it could run anything on it.

    Raises:
        UserError: says how to give the token.
    """
    pass_token_to_ray()
    if is_loopback(host):
        return
    sent = find_token()
    if sent is None or os.environ.get("RAY_AUTH_MODE") != "token":
        raise UserError(
            f"{host}: no token is given, and a cluster without one runs whatever anybody sends it. "
            "Put its token into a file of mode 0600 and set RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=FILE"
        )
    if len(sent) < MIN_TOKEN_CHARACTERS:
        raise UserError(f"{host}: its token has {len(sent)} characters, allowed: {MIN_TOKEN_CHARACTERS} or more")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine at an address that no other machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
