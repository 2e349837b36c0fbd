"""How much this machine has to do, for messages on what takes long."""

import os


def machine_load_text() -> str:
    """Return how many processes want to run, in the mean of the last minute, and whether that is more than CPUs.

    Example:
        >>> machine_load_text()  # doctest: +SKIP
        'this machine is busy, with a load of 5.2 on 2 CPUs'
    """
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    return (
        f"this machine {'is busy, with' if load > cpus else 'has'} a load of {load:.1f} on {cpus} CPU{'s' * (cpus > 1)}"
    )
