import csv
import io
import re

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import FillrankError, InputError, UnknownNameError
from fillrank.explore import uploads
from fillrank.explore.uploads import describe_for_page, fill
from fillrank.explore.views import LEVEL, ModelView
from helpers.explorer_models import FOODS, survey

WIDE = b"who,tea,apple,milk\nZoe,4.1,,2\nAl,,,3.25\n"
LONG = "person,food,liking\nZoe,tea,4.1\nZoe,milk,2\nAl,milk,3.25\n"


@pytest.fixture(scope="module")
def view():
    return ModelView(survey(), "survey")


def table(content):
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def expected(names, foods, values):
    return survey().fold_in(fr.Observations.from_triplets(names, foods, values))


def test_a_wide_table_is_completed(view):
    filled = fill(view, "new.csv", WIDE)
    assert list(filled.files) == ["new-filled.csv", "new-intervals.csv"]
    header, zoe, al = table(filled.files["new-filled.csv"])
    assert header == ["who", "tea", "apple", "milk"]
    assert (zoe[0], zoe[1], zoe[3], al[0], al[3]) == ("Zoe", "4.1", "2", "Al", "3.25")
    folded = expected(["Zoe", "Zoe", "Al"], ["tea", "milk", "milk"], [4.1, 2, 3.25])
    means = folded.predict(["Zoe", "Al", "Al"], ["apple", "tea", "apple"])
    assert [float(zoe[2]), float(al[1]), float(al[2])] == pytest.approx(means, rel=1e-5)


def test_intervals_are_those_of_new_rows(view):
    filled = fill(view, "new.csv", WIDE)
    folded = expected(["Zoe", "Zoe", "Al"], ["tea", "milk", "milk"], [4.1, 2, 3.25])
    header, *lines = table(filled.files["new-intervals.csv"])
    assert header == ["row", "column", "value", "lower", "upper"]
    assert [line[:2] for line in lines] == [["Zoe", "apple"], ["Al", "tea"], ["Al", "apple"]]
    for row, column, *numbers in lines:
        ends = folded.predict_interval(row, column, LEVEL, kind="observation")
        assert [float(n) for n in numbers[1:]] == pytest.approx(np.concatenate(ends), rel=1e-5)
    assert filled.about["filled"] == 3
    assert filled.about["given"] == 3
    assert [(cell["row"], cell["name"]) for cell in filled.about["cells"]] == [
        ("Zoe", "apple"), ("Al", "tea"), ("Al", "apple"),
    ]  # fmt: skip


def test_a_long_table_is_filled_in_all_columns(view):
    text = LONG.replace("person,food,liking", "user,item,rating")
    filled = fill(view, "new.csv", text.encode())
    assert list(filled.files) == ["new-filled.csv"]
    header, *lines = table(filled.files["new-filled.csv"])
    assert header == ["user", "item", "rating", "lower", "upper"]
    cells = {(line[0], line[1]) for line in lines}
    everything = {(who, food) for who in ("Zoe", "Al") for food in FOODS.split()}
    assert cells == everything - {("Zoe", "tea"), ("Zoe", "milk"), ("Al", "milk")}
    assert all(float(line[3]) < float(line[2]) < float(line[4]) for line in lines)


def test_columns_that_are_numbers_are_found_by_their_text():
    rng = np.random.default_rng(0)
    names = np.array(["10", "20", "30", "40"], dtype=object)  # text, as a data frame may have it
    i, j = np.indices((30, 4)).reshape(2, -1)
    data = fr.Observations.from_triplets(i, names[j], rng.normal(size=120))
    model = fr.SoftImpute(penalty=0.5, progress=False).fit(data)
    filled = fill(ModelView(model, "m"), "n.csv", b"id,30,10\nx,1.5,\ny,,0.5\n")
    header, *_ = table(filled.files["n-filled.csv"])
    assert header == ["id", "30", "10"]
    assert list(filled.files) == ["n-filled.csv"]  # SoftImpute has no intervals
    assert filled.about["intervals"] is False


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("e.csv", b"", "e.csv: the file is empty"),
        ("b.csv", bytes(range(256)) * 20, "b.csv: not a text file"),
        ("w.csv", b"hello there\nthis is no table\n", "w.csv, line 2"),
        ("u.csv", b"who,apple,cola\nZoe,1,\n", "'cola'"),
        ("f.csv", b"who,apple,tea\nZoe,1,2\n", "f.csv: no value is missing"),
        ("n.csv", b"who,apple,tea\nZoe,,\n", "at least one value"),
        ("p.xlsx", b"PK\x03\x04", "Save it as CSV"),
        ("t.csv.gz", b"\x1f\x8b", "Save it as CSV"),
        ("noending", b"a,b\n", "Save it as CSV"),
        ("", b"a,b\n", "Save it as CSV"),
        ("../../etc/d.csv", b"", "^d.csv: the file is empty"),
        ("d.csv", (LONG + "Al,milk,3\n").encode(), "Delete all but one of them"),
        ("i.csv", b"who,apple,tea\nZoe,inf,\n", "finite"),
    ],
)  # fmt: skip
def test_wrong_files_get_a_message_for_the_page(view, name, content, words):
    with pytest.raises(FillrankError) as refusal:
        fill(view, name, content)
    message = describe_for_page(refusal.value)
    assert re.search(words, message)
    assert not re.search(r"/tmp|duplicates|layout|row=|column=", message)


def test_unknown_columns_are_named(view):
    with pytest.raises(UnknownNameError, match="leave others out"):
        fill(view, "u.csv", b"who,apple,cola\nZoe,1,\n")


def test_a_table_with_too_many_cells_is_refused(view, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_CELLS", 5)
    with pytest.raises(InputError, match="up to 1 rows of 3 columns"):
        fill(view, "new.csv", WIDE)
    monkeypatch.undo()
    monkeypatch.setattr(uploads, "_MOST_DRAWS_BYTES", 1)
    with pytest.raises(InputError, match="Split it"):
        fill(view, "new.csv", WIDE)


def test_too_many_intervals_are_left_out(view, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_INTERVALS", 2)
    filled = fill(view, "new.csv", WIDE)
    assert list(filled.files) == ["new-filled.csv"]
    assert filled.about["intervals"] is False


def test_values_that_differ_in_late_digits_are_written_with_them():
    rng = np.random.default_rng(0)
    data = fr.Observations.from_matrix(1e8 + rng.normal(size=(30, 4)))
    model = fr.SoftImpute(penalty=0.5, progress=False).fit(data)
    content = b"id,0,1,2,3\nx,100000000.5,,100000001,99999999\n"
    filled = fill(ModelView(model, "m"), "n.csv", content)
    value = table(filled.files["n-filled.csv"])[1][2]
    assert len(value.replace(".", "")) > 9
