"""A bias of one value, which nothing that needs a bias can use."""

from dataclasses import replace

from study import methods, metrics
from study.spec.study_spec import StudySpec
from study.text.quoted import quoted


def fault(spec: StudySpec) -> str | None:
    """Why a study's data do not do, where their bias is one value and the method, metric or a constraint needs one."""
    names = None if spec.function else spec.facts.bias_names
    if not names or len(names) > 1:
        return None
    without = metrics.available(replace(spec.facts, bias_classes=None, bias_names=None), inferred=True)
    users = [name for name in spec.objective.needed if name.removeprefix("val/") not in without]
    method = spec.trial_document({})["method"]
    users += [f"method {method['name']}"] if methods.needs(method).bias else []
    if not users:
        return None
    sentence = f"the bias is {quoted(names[0])} in every row: {', '.join(users)} can tell no groups apart"
    return f"{sentence}. Name another column, or take a metric and a method that need no bias"
