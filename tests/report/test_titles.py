"""Titles of rows and columns in the report."""

import re

import jinja2
import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import InputError
from fillrank.report import html
from fillrank.report.html import write_report
from fillrank.report.names import Names
from helpers.mixed_tables import mixed_model
from helpers.read_page import DOT, Page, read
from helpers.small_models import fitted

HOSTILE = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "\u202eexe.gpj",
    "\x1b[31mred", "lone \ud800", "x" * 300, "two\nlines", "javascript:alert(1)",
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_plots(monkeypatch):
    """Replace plots by an image of one dot: drawing takes most of the time."""
    monkeypatch.setattr(html, "render", lambda *_, **__: DOT)


def titles_of(labels, word):
    return {label: f"{word} {label.rpartition(' ')[2]}" for label in labels}


def test_titles_with_labels_beside_them(tmp_path):
    model, test = fitted("GASR")
    data, path = model.observations_, tmp_path / "report.html"
    films, people = titles_of(data.column_labels, "Film"), titles_of(data.row_labels, "Person")
    del films["column 3"], people["row 4"]
    write_report(model, path, test, row_titles=people, column_titles=pd.Series(films))
    page, text = read(path), path.read_text(encoding="utf-8")
    body = text.partition("Columns, worst first")[2].partition("</table>")[0]
    shown = re.findall(r'<td title="(.*?)"><bdi>(.*?)( <span.*?</span>)?</bdi></td>', body)
    expected = []
    for label in fr.score_by_column(test, model)["column"]:
        title = films.get(label)
        beside = f' <span class="label"><bdi>{label}</bdi></span>'
        expected.append((f"{title}, {label}", title, beside) if title else (label, label, ""))
    assert shown == expected
    assert len(re.findall(r"<td .*?Person \d+ <span", page_part(text, "certainty"))) >= 15
    assert "Person 7, row 7" in page.text["maps"]
    assert "Film 7, column 7" in page.text["maps"]
    drawn = re.findall(r"<text .*?>(.*?)</text>", page_part(text, "maps"))
    assert {label.split()[0] for label in drawn} <= {"Person", "Film", "row", "column"}
    assert {"Person", "Film"} <= {label.split()[0] for label in drawn}


def page_part(text, section):
    return re.search(rf'<section id="{section}">.*?</section>', text, flags=re.DOTALL).group()


def test_columns_of_mixed_kinds(tmp_path):
    model, test = mixed_model()
    path = tmp_path / "report.html"
    rows = dict.fromkeys(model.observations_.row_labels, "A patient")
    columns = {"region": "Region of birth", "weight": "Body weight", "gone": "No such column"}
    write_report(model, path, test=test, row_titles=rows, column_titles=columns)
    page = read(path)
    assert "Body weight weight" in page.text["columns"]
    assert "Region of birth region" in page.text["levels"]
    assert "A patient p" in page.text["levels"]
    assert "No such column" not in path.read_text(encoding="utf-8")


def test_without_titles_nothing_changes(tmp_path):
    model, _ = fitted("GASR")
    texts = []
    for titles in (None, {}, {"column 0": None, "column 1": "column 1", "column 2": np.nan}):
        write_report(model, tmp_path / "report.html", column_titles=titles)
        texts.append((tmp_path / "report.html").read_text(encoding="utf-8"))
    first, *others = (re.sub(r"report made on .*", "", text) for text in texts)
    assert others == [first, first]


def test_titles_are_escaped(tmp_path, monkeypatch):
    model, _ = fitted("GASR")
    labels = model.observations_.column_labels
    titles = dict(zip(labels, (HOSTILE * 3)[: len(labels)], strict=True))
    path = tmp_path / "report.html"
    write_report(model, path, column_titles=titles)
    page = read(path)
    assert "<script>alert(1)</script>, column" in page.text["maps"]
    assert "two lines, column" in page.text["maps"]
    assert "{{ 7 * 7 }}, column" in page.text["maps"]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]", path.read_text(encoding="utf-8"))
    environment = jinja2.Environment
    monkeypatch.setattr(
        jinja2, "Environment", lambda **options: environment(**options | {"autoescape": False})
    )
    write_report(model, path, column_titles=titles)
    assert "tag script" in Page(path.read_text(encoding="utf-8")).faults


def test_titles_that_are_no_mapping_are_refused(tmp_path):
    model, _ = fitted("SoftImpute")
    for titles in ("movies.csv", 5, ["Toy Story"]):
        with pytest.raises(InputError, match=r"column_titles must be titles .*fr.read_titles"):
            write_report(model, tmp_path / "report.html", column_titles=titles)
    assert not (tmp_path / "report.html").exists()


def test_labels_match_by_their_text():
    names = Names(row_titles={"2024-01-31": "A day", "7": "Seven"})
    assert names.row(np.datetime64("2024-01-31", "ns")).text == "A day"
    assert names.row(7) == names.row("7") == ("Seven", "Seven, 7", "7")
    assert names.column(7) == ("7", "7", "")
