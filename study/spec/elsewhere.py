"""A study file that is to run elsewhere, where its data may be and here not."""

from collections.abc import Iterable

from study.errors import UserError
from study.spec.document import apply_profile, find, override, read
from study.spec.load import load_study, resolved
from study.spec.origin import check_origin
from study.spec.study_spec import StudySpec


def load_for_elsewhere(spec: str, assignments: Iterable[str] = ()) -> StudySpec:
    """The study of a shipped name or a file's path, with overrides applied and everything checked.

    Of an exported configuration whose data are not here, only the form is checked: it was checked when it was exported,
    and is again where it runs.

    Raises:
        UserError: see `study.spec.load.load_study`.
    """
    assignments = list(assignments)
    document = read(find(spec))
    if not isinstance(document.values.get("origin"), dict):
        return load_study(spec, assignments)
    check_origin(document, assignments)
    apply_profile(document, None)
    override(document, assignments)
    study = resolved(document)
    try:
        study.describe(study.base["data"])
    except UserError:
        return study
    return load_study(spec, assignments)
