"""What Ray's client of jobs raises, as what a user can mend."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from study.cluster.head import gone, refused
from study.errors import UserError


@contextmanager
def told_to_the_user(address: str) -> Iterator[None]:
    """Tell what Ray's client raises as what the user can mend."""
    from ray.exceptions import RayError

    try:
        yield
    except UserError:
        raise
    except ConnectionError:
        raise gone(address) from None
    except (RayError, RuntimeError, OSError, ValueError) as error:
        text = str(error)
        if re.search(r"status(?: code)? (401|403)|Unauthorized|[Aa]uthentication", text):
            raise refused(address) from None
        last = text.strip().splitlines()[-1][:500] if text.strip() else repr(error)
        raise UserError(f"--address {address}: {last}") from None
