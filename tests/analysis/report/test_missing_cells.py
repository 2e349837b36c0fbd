"""A report of any study, whatever its trials lack."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis.figures import FIGURES
from study.analysis.report.page_formats import page_to_html, page_to_markdown
from study.analysis.report.report_page import build_report_page
from study.ranking import Results

VALUES = st.none() | st.floats(0.0, 1.0)
TRIALS = st.tuples(
    st.sampled_from(["baseline", "search", "confirm", "final"]),
    st.lists(VALUES, max_size=3),
    st.sampled_from(["complete", "pruned", "failed", None]),
    VALUES,
    st.integers(0, 2),
    st.fixed_dictionaries({}, optional={"method.alpha": st.sampled_from([0.01, 1.0]), "method.epsilon": st.just(0.1)}),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(trials=st.lists(TRIALS, max_size=8), closed=st.booleans(), final=st.booleans(), draw=st.booleans())
def test_missing_cells_are_never_an_error(spec, final_spec, writer, trials, closed, final, draw):
    spec = final_spec if final else spec
    study = writer()
    for number, (stage, values, state, test, seed, params) in enumerate(trials):
        stage = stage if number or stage != "confirm" else "search"
        repeats = min(seed, number - 1) if stage == "confirm" else None
        study.trial(stage, values, state, test, params=params, seed=seed, repeats=repeats)
    record = study.record("complete" if closed else None)
    figures = {name: function(Results(spec, record)) for name, function in FIGURES.items()} if draw else {}
    drawn = {name: figure for name, figure in figures.items() if figure}
    for figure in drawn.values():
        figure.draw_without_rendering()
    page = build_report_page(Results(spec, record), drawn)
    markdown, html = page_to_markdown(page), page_to_html(page, dict.fromkeys(drawn, b""))
    assert not re.search(r"\| (nan|None|<NA>) \|", markdown)
    assert html.endswith("</html>")
