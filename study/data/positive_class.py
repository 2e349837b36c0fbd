"""Which of two classes is the positive one: class 1, the second, for every metric that has one."""

from collections.abc import Sequence

from study.data.dataset import Facts
from study.knobs import Section
from study.text import quoted

POSITIVE_CLASS_NAMES = (
    "yes y true t 1 approved accepted granted hired admitted positive pos good passed pass successful success repaid "
    "paid on ja wahr bewilligt genehmigt bestanden gut oui vrai si sí sì sim"
)
NEGATIVE_CLASS_NAMES = (
    "no n false f 0 -1 denied declined rejected refused negative neg bad failed fail unsuccessful failure defaulted "
    "unpaid off nein falsch abgelehnt nicht_bestanden schlecht non faux não nao nee"
)
"""Class names, in small letters, that are clearly positive or negative where one of each list stands together: in
English, German, French, Spanish, Italian, Portuguese and Dutch."""


def positive_class_name(class_names: Sequence[str] | None) -> str | None:
    """Return the name of the positive class; None: there are not two classes with names."""
    return class_names[1] if class_names and len(class_names) == 2 else None


def guess_positive_class_name(class_names: Sequence[str] | None) -> str | None:
    """Guess the positive class by its name, as `yes` beside `no`; None where the names do not tell."""
    if not class_names or len(class_names) != 2:
        return None
    lower = [name.strip().lower() for name in class_names]
    yes = POSITIVE_CLASS_NAMES.split()
    no = NEGATIVE_CLASS_NAMES.split()
    return next((class_names[place] for place in (0, 1) if lower[place] in yes and lower[1 - place] in no), None)


def positive_class_warnings(section: Section, facts: Facts) -> list[str]:
    """Warn where the names suggest that the other class is the positive one, and no key says which is.

    Args:
        section: `data` of a study.
    """
    taken, better = positive_class_name(facts.class_names), guess_positive_class_name(facts.class_names)
    if better is None or better == taken or section.get("positive") is not None or "positive" not in section:
        return []
    key = f'"{better}"' if better.lower() in ("yes", "y", "true", "1", "on") else better  # YAML reads no text there
    return [
        f"the positive class is {quoted(str(taken))}, the second by alphabet; equal_opportunity and auc are of it. If "
        f"you mean {quoted(better)}, say data.positive: {key}"
    ]
