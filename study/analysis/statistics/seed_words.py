"""On which seeds a number stands, in words."""

from study.spec import StudySpec


def searched(spec: StudySpec) -> str:
    """What the search compares configurations by: `one seed`, `mean over 3 seeds`."""
    return "one seed" if len(spec.seeds) == 1 else f"mean over {len(spec.seeds)} seeds"
