"""Where the driver leaves its answer to a report of a process that trains several trials as one."""


def key(name: str, turn: int) -> str:
    """Of the answer to the report that is the `turn`-th of a process's work, in the store of Ray's head."""
    return f"study/stack/{name}/{turn}"
