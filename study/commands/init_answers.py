"""The answers to what `study init` asks: from flags, asked for, or defaults."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from study import data
from study.errors import KEYS_COMMAND, UserError, suggest_or_list
from study.knobs import Section, Value
from study.spec.key_errors import fault_of_value
from study.spec.yaml_document import YamlDocument, apply_overrides, mapping_or_empty

AnswerCheck = Callable[[str], None]
"""Raises a UserError if an answer cannot be used."""

AskQuestion = Callable[[str, str | None], str]
"""Asks a question with a default answer."""


@dataclass(frozen=True)
class AnswerSource:
    """Answers to questions: from flags, asked for until they can be used, or defaults.

    Attributes:
        ask_question: asks the user; None if nobody can be asked.
        print_line: shows a sentence, as why an answer cannot be used.
    """

    ask_question: AskQuestion | None
    print_line: Callable[[str], None]

    def __call__(
        self, flag: str, flag_value: str | None, question: str, default: str | None, check: AnswerCheck
    ) -> str:
        """Return one answer.

        Args:
            flag: the option of the command line, for messages.
            flag_value: what it was given; None: it was not.

        Raises:
            UserError: the flag's value cannot be used; or there is none, no default, and nobody can be asked.
        """
        while flag_value is None and self.ask_question is not None:
            answer = self.ask_question(question, default).strip()
            try:
                check(answer)
            except UserError as error:
                self.print_line(str(error))
            else:
                return answer
        given = default if flag_value is None else flag_value
        if given is None:
            raise UserError(f"{flag} is missing: {question}")
        check(given)
        return given


def one_of_check(*allowed: str) -> AnswerCheck:
    """Return a check that an answer is one of a few words."""

    def check(answer: str) -> None:
        if answer not in allowed:
            raise UserError(f"{answer!r} given. {suggest_or_list(answer, allowed)}")

    return check


def split_names(text: str) -> list[str]:
    """Return the names of a comma-separated list, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def with_data_assignments(section: Section, assignments: Sequence[str]) -> dict[str, Value]:
    """Return a `data` section with those of the assignments that set its keys: what else is drafted depends on it.

    Args:
        assignments: `section.key=value`, each read as YAML.

    Raises:
        UserError: one is not of that form, is no key of this data set, or cannot have this value.
    """
    apply_overrides(YamlDocument("--set", {}), assignments)
    document = YamlDocument("--set", {"data": dict(section)})
    apply_overrides(document, [text for text in assignments if text.startswith("data.")])
    values = dict(mapping_or_empty(document.values["data"]))
    knobs = {knob.key: knob for knob in data.data_knobs(str(section["name"]))}
    for key in sorted(values.keys() - section.keys()):
        if key not in knobs:
            raise UserError(f"--set data.{key}: unknown key. {suggest_or_list(key, knobs, command=KEYS_COMMAND)}")
        if why := fault_of_value(knobs[key], values[key]):
            raise UserError(f"--set data.{key}: {why}")
    return values
