import csv
import re
from base64 import b64decode
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from helpers import append_event
from matplotlib.image import imread

from study.analysis import trials_frame, write_report
from study.analysis.report.page_formats import (
    PageSection,
    ReportPage,
    TableBlock,
    page_to_html,
    page_to_markdown,
)
from study.errors import UserError
from study.home.ledger import Ledger
from study.ranking import Results
from study.spec import load_study
from study.text import unescape_formula

DRAWN = {"seeds", "learning_curves"}

HOSTILE = '<script>alert("x")</script> | `$a_b$` ![](http://evil.example/x.png) \n# not a heading'


class Reader(HTMLParser):
    """Collects what a browser would load, run and show."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.loaded, self.text = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def report(spec, frozen, tmp_path_factory):
    return write_report(Results(spec, frozen), tmp_path_factory.mktemp("out") / "report").parent


@pytest.mark.slow
def test_every_file_is_there(report):
    files = sorted(str(path.relative_to(report)) for path in report.rglob("*") if path.is_file())
    figures = [f"figures/{name}.png" for name in DRAWN]
    assert files == sorted(["report.html", "report.md", "trials.csv", *figures])


@pytest.mark.slow
def test_figures_show_something(report):
    for path in (report / "figures").glob("*.png"):
        pixels = imread(path)
        assert pixels.shape[1] == 1260
        assert np.mean(pixels[..., :3].min(axis=2) < 0.9) > 0.01


@pytest.mark.slow
def test_the_page_needs_nothing_else(report):
    html = (report / "report.html").read_text()
    read = Reader(html)
    assert len(read.loaded) == 2 * len(DRAWN)  # each once more for a narrow screen
    assert all(source.startswith("data:image/png;base64,") for source in read.loaded)
    assert not {"link", "iframe"} & set(read.tags)
    assert not re.search(r"url\(|@import|https?://", html)
    assert "default-src 'none'" in html  # the browser itself refuses what would go out


def test_on_a_narrow_screen_figures_fit_with_their_panels_below_one_another(report):
    html = (report / "report.html").read_text()
    narrow = re.findall(r'<source media="\(max-width: 40rem\)" srcset="data:image/png;base64,([^"]+)">', html)
    shapes = [imread(BytesIO(b64decode(picture))).shape for picture in narrow]
    wide = [imread(report / "figures" / f"{name}.png").shape for name in ("seeds", "learning_curves")]
    assert [stacked[1] < 0.7 * beside[1] for stacked, beside in zip(shapes, wide, strict=True)] == [True, True]
    assert [stacked[0] > 1.5 * beside[0] for stacked, beside in zip(shapes, wide, strict=True)] == [True, False]


def test_both_forms_say_the_same(report):
    text = " ".join(Reader((report / "report.html").read_text()).text)
    markdown = (report / "report.md").read_text()
    for title in re.findall(r"^#+ (.*)$", markdown, re.MULTILINE):
        assert title in text
    for said in ("74.0 ± 4.0%", "better beyond the spread over seeds", "abc1234", "2027-01-15 08:00:00 UTC"):
        assert said in markdown
        assert said in text
    assert "1 trial failed: Diverged: loss is nan in epoch 1" in text


def test_linked_figures_exist(report):
    linked = re.findall(r"\]\((figures/.*?)\)", (report / "report.md").read_text())
    assert len(linked) == len(DRAWN)
    assert all((report / link).is_file() for link in linked)


def test_the_csv_has_every_trial(report, frozen):
    with open(report / "trials.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(frozen.trials)
    assert rows[4]["method.alpha"] == "0.123456"


@pytest.mark.slow
def test_no_text_in_the_csv_is_a_formula_and_numbers_are_numbers(writer, tmp_path, quick):
    study = writer()
    study.trial("search", [0.5], params={"method.alpha": -0.5, "data.key": "=1+2"}, reason="@x\n=y", state="failed")
    study.trial("search", [0.5], params={"method.alpha": -1e-5, "data.key": "-0.5"})
    spec = load_study("fairkl_digits", ["search.trials=2"])
    record = study.record()
    write_report(Results(spec, record), tmp_path)
    frame = pd.read_csv(tmp_path / "trials.csv", dtype={"data.key": str})
    assert frame["data.key"].tolist() == ["'=1+2", "-0.5"]
    assert frame["reason"][0] == "'@x\n=y"
    assert frame["method.alpha"].tolist() == [-0.5, -1e-5]
    assert [unescape_formula(text) for text in frame["data.key"]] == trials_frame(Results(spec, record))[
        "data.key"
    ].tolist()


@pytest.mark.slow
def test_the_same_study_gives_the_same_bytes(spec, frozen, report, tmp_path):
    """Of the page and its texts; figures as files: `test_files_are_the_same_every_time`."""
    again = write_report(Results(spec, frozen), tmp_path).parent
    for name in ("report.html", "report.md", "trials.csv"):
        assert (again / name).read_bytes() == (report / name).read_bytes(), name


@pytest.mark.slow
def test_user_text_is_text(writer, tmp_path, quick):
    spec = load_study("fairkl_digits", ["search.trials=2"])
    study = writer()
    study.trial("search", [0.5], reason=HOSTILE, state="failed")
    for alpha in (0.1, 0.2, 0.3, 0.4, 0.5):
        study.trial("search", [0.5], params={"method.alpha": alpha, "data.key": HOSTILE})
    study.ledger.close()
    append_event(study.path, "opened", owner="ada", commit=HOSTILE, **{"<b>key": {"<i>": "x"}})
    study.ledger = Ledger(study.path)
    object.__setattr__(spec, "name", HOSTILE)  # a name from elsewhere than the checked file
    write_report(Results(spec, study.record()), tmp_path)
    read = Reader((tmp_path / "report.html").read_text())
    assert not {"b", "i"} & set(read.tags)
    assert read.tags.count("script") == 1  # of the hints
    assert '<script>alert("x")</script>' in "".join(read.text)
    markdown = (tmp_path / "report.md").read_text()
    assert not re.search(r"(?<!\\)<", markdown)
    assert not re.search(r"(?<!\\)!\[\]", markdown.replace("!\\[\\]", ""))
    rows = [line for line in markdown.splitlines() if line.startswith("| commit |")]
    assert len(rows) == 1
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 3


def test_a_folder_that_cannot_be_written(spec, writer, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file: cannot be written"):
        write_report(Results(spec, writer().record()), tmp_path / "file")


def test_a_failure_leaves_the_old_file(spec, writer, tmp_path, monkeypatch):
    (tmp_path / "report.html").write_text("old")
    record = writer().record()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/"):
        write_report(Results(spec, record), tmp_path)
    assert (tmp_path / "report.html").read_text() == "old"
    assert not list(tmp_path.rglob("*.part"))


def test_a_figure_of_a_former_report_goes(spec, writer, tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "seeds.png").touch()
    (tmp_path / "figures" / "importance.pdf").touch()
    study = writer()
    study.trial("search", [], state="failed")
    write_report(Results(spec, study.record()), tmp_path)
    assert not list((tmp_path / "figures").iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_pdfs_are_written_once_asked_for_and_then_renewed(spec, writer, tmp_path):
    study = writer()
    study.trial("search", [0.1, 0.5])
    study.trial("search", [0.2, 0.6])
    figures, record = tmp_path / "figures", study.record(state=None)
    write_report(Results(spec, record), tmp_path, pdf=True)
    pdfs = {file: file.read_bytes() for file in figures.glob("*.pdf")}
    assert {file.stem for file in pdfs} == {file.stem for file in figures.glob("*.png")} != set()
    for file in pdfs:
        file.write_bytes(b"of before")
    write_report(Results(spec, record), tmp_path)
    assert {file: file.read_bytes() for file in figures.glob("*.pdf")} == pdfs


def test_a_command_in_a_sentence_is_code_and_what_it_holds_cannot_be_taken_for_markup() -> None:
    told = "Type this: `study export 'a_b*' --where 'val/accuracy>=0.7'`, not <b>*that*</b>."
    page = ReportPage("page", [("Next", [told])], [PageSection("x", [told, [told]])])
    html, markdown = page_to_html(page, {}), page_to_markdown(page)
    code = "<code>study export &#39;a_b*&#39; --where &#39;val/accuracy&gt;=0.7&#39;</code>, not &lt;b&gt;*that*"
    assert html.count(code) == 3
    line = r"Type this: `study export 'a_b*' --where 'val/accuracy>=0.7'`, not \<b\>\*that\*\</b\>."
    assert [one.removeprefix("**Next.** ").removeprefix("- ") for one in markdown.splitlines()].count(line) == 3


def test_a_table_of_many_columns_may_be_wider_than_the_text() -> None:
    narrow, broad = (pd.DataFrame({f"key{column}": ["1"] for column in range(count)}) for count in (10, 13))
    html = page_to_html(ReportPage("page", [], [PageSection("x", [TableBlock(narrow), TableBlock(broad)])]), {})
    assert html.count('<div class="wide dense"') == html.count('<div class="wide" tabindex') == 1
