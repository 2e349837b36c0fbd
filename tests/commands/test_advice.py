"""Which method for whom: what `study init` drafts, what it says, and the guide's table agree."""

import re
from pathlib import Path

import pytest
from pages import GUIDE

from study import methods
from study.commands.draft import ADDED, Bias, default_methods, method_section
from study.commands.init import WHY, Asker, Flags, advice, situation, write
from study.spec import load_study

SECTION = (
    (GUIDE / "own-data.md")
    .read_text(encoding="utf-8")
    .partition("\n## Which method for me, with bias labels or without\n")[2]
)
TABLE = SECTION.partition("|---|---|---|---|---|\n")[2].partition("\n\n")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TABLE.splitlines()]
CASES = [Bias("labels"), Bias("some_labels"), Bias("none", "colour"), Bias("none", "texture"), Bias("none", "unknown")]


def test_the_table_has_a_row_for_each_situation() -> None:
    assert len(ROWS) == len(CASES) == len(WHY)
    assert {situation(bias) for bias in CASES} == set(WHY)


@pytest.mark.parametrize(("row", "bias"), list(zip(ROWS, CASES, strict=True)), ids=list(map(situation, CASES)))
def test_a_row_names_the_drafted_methods_and_the_reason_that_is_said(row: list[str], bias: Bias) -> None:
    _, kinds, answer, drafted, because = row
    default = default_methods(bias)
    named = [name for name in re.findall(r"`(\w+)`", drafted) if name in methods.names()]
    assert tuple(named) == tuple(name.removesuffix(ADDED) for name in default)
    sections = [method_section(name, bias) for name in default]
    assert ("FairKL" in drafted) == any(values.get("regulariser") == "fair_kl" for values in sections)
    sources = [str(values["bias_source"]) for values in sections if "bias_source" in values]
    assert [f"bias_source: {source}" in drafted for source in sources] == [True] * len(sources)
    assert because == WHY[situation(bias)]
    assert ("--bias none" in answer) == (bias.known == "none")
    assert ("--guess" in answer) == (kinds == "images") == (bias.guess != "unknown")
    if bias.guess != "unknown":
        assert f"--guess {bias.guess}" in answer
    assert advice(bias, default).endswith(because)


@pytest.mark.parametrize(
    ("bias", "chosen", "line"),
    [
        ("sex", (), f"method: eps_sup_info_nce with fair_kl, as {WHY['labels']}"),
        (None, (), f"method: cross_entropy and learning_from_failure, as {WHY['unknown']}"),
        (
            "sex",
            ("group_dro",),
            f"method: group_dro, as you said; without --method it would be eps_sup_info_nce with fair_kl, as "
            f"{WHY['labels']}",
        ),
    ],
)
def test_init_says_why(
    bias: str | None, chosen: tuple[str, ...], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people = [f"{n % 7},{n % 5},{('yes', 'no')[n % 2]},{('f', 'm')[n // 2 % 2]}" for n in range(80)]
    Path("loans.csv").write_text("\n".join(["income,sum,repaid,sex", *people]))
    told: list[str] = []
    limit = ["search.constraints=[val/equalized_odds <= 0.1]"] if bias else []
    flags = Flags("mine", "loans.csv", target="repaid", bias=bias, methods=chosen or None, assignments=limit)
    path = write(flags, None, False, Asker(None, told.append))
    assert told[0].startswith("positive class: yes.")
    assert told[-1] == line
    assert ("warning: 22 of 80 rows have the inputs of another one: they stay in one split" in told) == (bias is None)
    names = chosen or default_methods(Bias("labels" if bias else "none"))
    assert load_study(str(path)).base["method"]["name"] in [name.removesuffix(ADDED) for name in names]
