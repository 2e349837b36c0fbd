"""Which method for whom: what `study init` drafts, what it says, and the guide's table agree."""

from pathlib import Path

import pytest

from study.commands.draft import ADDED, Bias, default_methods
from study.commands.init import WHY, Asker, Flags, write
from study.spec import load_study


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
