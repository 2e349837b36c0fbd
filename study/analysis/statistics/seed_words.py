"""On which seeds a number stands, in words."""

from study.spec import StudySpec


def searched(spec: StudySpec) -> str:
    """What the search compares configurations by: `one seed`, `mean over 3 seeds`."""
    return "one seed" if len(spec.seeds) == 1 else f"mean over {len(spec.seeds)} seeds"


def leading(spec: StudySpec) -> str:
    """On what a trial of the search itself ran: `one seed`, `on the first of its 3 seeds`."""
    return "one seed" if len(spec.seeds) == 1 else f"on the first of its {len(spec.seeds)} seeds"
