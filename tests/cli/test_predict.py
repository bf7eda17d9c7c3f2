import json

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from helpers.refusals import assert_refused
from helpers.result_files import read_csv

QUICK = ("--sweeps", "20", "--max-rank", "2")


@pytest.fixture
def model(keep, write_long):
    return keep(write_long())


def lines(ran):
    assert ran.code == 0, ran.err
    return [line.split(",") for line in ran.raw.splitlines()]


def test_pairs_from_standard_input_in_their_order(fillrank, model):
    ran = fillrank("predict", "model.fillrank", stdin="user,item\nu3,i2\nu0,i1\nu3,i2\n")
    header, *answers = lines(ran)
    assert header == ["user", "item", "rating"]
    assert [answer[:2] for answer in answers] == [["u3", "i2"], ["u0", "i1"], ["u3", "i2"]]
    expected = model.predict(["u3", "u0", "u3"], ["i2", "i1", "i2"])
    np.testing.assert_allclose([float(answer[2]) for answer in answers], expected, rtol=1e-5)
    assert "GASR, 14 rows x 8 columns, with its" in ran.err


@pytest.mark.parametrize(
    "text",
    [
        "u3,i2\n",
        "u3;i2",
        "u3\ti2\n",
        "u3::i2::5::978300760\n",
        "\ufeffuser,item\nu3,i2\n",
        "item|when|user\ni2|9|u3\n",
        "row,column\nu3,i2\n",
        "movieId,userId,rating\ni2,u3,4\n",
        '"u3","i2"\r\n',
        "\n u3 , i2 \n\n",
    ],
)
def test_pairs_are_read_in_many_formats(fillrank, model, text):
    _, answer = lines(fillrank("predict", "model.fillrank", "-", stdin=text))
    assert answer[:2] == ["u3", "i2"]


def test_names_that_the_model_does_not_know(fillrank, model):
    text = "u3,i2\nZoe,i2\n"
    assert_refused(fillrank("predict", "model.fillrank", stdin=text), "'Zoe'", "--unknown prior")
    ran = fillrank("predict", "model.fillrank", "--unknown", "prior", "--level", "0.9", stdin=text)
    _, known, new = lines(ran)
    assert new[:2] == ["Zoe", "i2"]
    assert float(new[4]) - float(new[3]) > float(known[4]) - float(known[3])


@pytest.fixture
def numbered(fillrank, matrix, tmp_path):
    """A model whose names are like those of fields: user 1, film 1."""
    lines = ["user,film,stars"]
    lines += [f"user {i},film {j},{x}" for (i, j), x in np.ndenumerate(matrix) if not np.isnan(x)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert fillrank("fit", "t.csv", "-o", "numbered.fillrank", *QUICK).code == 0


def test_a_first_line_with_known_labels_is_not_a_header(fillrank, numbered):
    def asked(text):
        return [
            line[:2] for line in lines(fillrank("predict", "numbered.fillrank", stdin=text))[1:]
        ]

    pairs = [["user 1", "film 3"], ["user 2", "film 4"]]
    assert asked("user 1,film 3\nuser 2,film 4\n") == pairs
    assert asked("user 1,film 3\n") == pairs[:1]
    for header in ("user,film", "User ID,Film", "row,column"):
        assert asked(f"{header}\nuser 1,film 3\nuser 2,film 4\n") == pairs


@pytest.mark.parametrize(
    ("first", "unknown"), [("user 1,film 99", "film 99"), ("user 98,film 99", "user 98")]
)
def test_a_first_line_with_an_unknown_label_is_not_a_header(fillrank, numbered, first, unknown):
    ran = fillrank("predict", "numbered.fillrank", stdin=f"{first}\nuser 2,film 4\n")
    assert_refused(ran, "label is unknown", unknown)


@pytest.mark.parametrize(
    "text",
    [
        "user 1,nofilm\nuser 2,film 4\n",
        "nofilm,user 1\nfilm 4,user 2\n",
        "nofilm;user 1;3\nfilm 4;user 2;4\n",
    ],
)
def test_a_first_line_with_one_known_label_is_data(fillrank, numbered, text):
    assert_refused(
        fillrank("predict", "numbered.fillrank", stdin=text), "'nofilm'", "--unknown prior"
    )
    ran = fillrank("predict", "numbered.fillrank", "--unknown", "prior", stdin=text)
    assert [pair[:2] for pair in lines(ran)[1:]] == [["user 1", "nofilm"], ["user 2", "film 4"]]


def test_numbers_do_not_show_the_order_of_labels(fillrank, keep, matrix, tmp_path):
    """Rows are 0 to 13 and columns 0 to 7: 99, 12 is row 99 and no column, not row 12."""
    np.save(tmp_path / "t.npy", matrix)
    keep(tmp_path / "t.npy")
    assert_refused(fillrank("predict", "model.fillrank", stdin="7,12\n"), "1 column label", "12")
    assert_refused(fillrank("predict", "model.fillrank", stdin="99,12\n"), "'99', '12'")


def test_fields_can_be_named(fillrank, model, tmp_path):
    (tmp_path / "asked.csv").write_text("a,b\ni2,u3\n")
    ran = fillrank("predict", "model.fillrank", "asked.csv", "--row", "b", "--column", "a")
    assert lines(ran)[1][:2] == ["u3", "i2"]
    assert_refused(fillrank("predict", "model.fillrank", "asked.csv", "--row", "b"), "--column")


def test_intervals_are_those_of_new_observations(fillrank, model):
    ran = fillrank("predict", "model.fillrank", "--level", "0.8", stdin="u3,i2\n")
    header, (*_, low, high) = lines(ran)
    assert header[3:] == ["lower", "upper"]
    expected = model.predict_interval("u3", "i2", level=0.8, kind="observation")
    np.testing.assert_allclose([float(low), float(high)], np.ravel(expected), rtol=1e-5)


def test_json_is_the_only_standard_output(fillrank, model):
    ran = fillrank("predict", "model.fillrank", "--json", stdin="u3,i2\nu0,i1\n")
    first, second = json.loads(ran.raw)
    assert (first["user"], second["item"]) == ("u3", "i1")
    assert first["rating"] == pytest.approx(model.predict("u3", "i2")[0], rel=1e-5)


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "parquet"])
def test_all_missing_cells_to_a_file(fillrank, model, matrix, tmp_path, ending):
    ran = fillrank("predict", "model.fillrank", "--missing", "-o", f"all.{ending}")
    assert ran.code == 0, ran.err
    assert ran.out == f"all.{ending}"
    path = tmp_path / f"all.{ending}"
    read = {
        "csv": pd.read_csv,
        "tsv": lambda path: pd.read_csv(path, sep="\t"),
        "json": pd.read_json,
        "parquet": pd.read_parquet,
    }[ending]
    table = read(path)
    cells = {(f"u{i}", f"i{j}") for i, j in np.argwhere(np.isnan(matrix))}
    assert set(zip(table["user"], table["item"], strict=True)) == cells
    assert np.isfinite(table["rating"]).all()
    assert_refused(
        fillrank("predict", "model.fillrank", "--missing", "-o", path.name),
        "already exists",
        "--force",
    )
    assert fillrank("predict", "model.fillrank", "--missing", "-o", path.name, "--force").code == 0


def test_pairs_and_output_as_parquet_with_numbers_for_names(fillrank, keep, matrix, tmp_path):
    np.save(tmp_path / "t.npy", matrix)
    keep("t.npy")
    pd.DataFrame({"row": [3, 0], "column": [2, 1]}).to_parquet(tmp_path / "asked.parquet")
    ran = fillrank("predict", "model.fillrank", "asked.parquet", "--json")
    assert [(each["row"], each["column"]) for each in json.loads(ran.raw)] == [(3, 2), (0, 1)]
    assert lines(fillrank("predict", "model.fillrank", stdin="3,2\n"))[1][:2] == ["3", "2"]


def test_dates_are_found_as_they_are_written(fillrank, keep, matrix, tmp_path):
    days = pd.date_range("2024-01-01", periods=len(matrix), freq="D")
    columns = {f"c{j}": matrix[:, j] for j in range(matrix.shape[1])}
    pd.DataFrame({"day": days, **columns}).to_parquet(tmp_path / "t.parquet")
    keep("t.parquet")
    ran = fillrank("predict", "model.fillrank", stdin="2024-01-03,c2\n")
    assert lines(ran)[1][:2] == ["2024-01-03", "c2"]
    ran = fillrank("recommend", "model.fillrank", "2024-01-03", "--with-seen", "-n", "1", "--json")
    assert json.loads(ran.raw)[0]["row"] == "2024-01-03"


def test_a_model_without_its_table_predicts_pairs_alone(fillrank, keep, write_long):
    model = keep(write_long(), with_data=False)
    ran = fillrank("predict", "model.fillrank", stdin="u3,i2\n")
    value = float(lines(ran)[1][2])
    assert value == pytest.approx(model.predict("u3", "i2")[0], rel=1e-4)
    assert "without its entries" in ran.err
    assert_refused(fillrank("predict", "model.fillrank", "--missing"), "--with-data")


def test_invalid_requests_are_rejected(fillrank, keep, model, write_long, tmp_path):
    table = write_long()
    keep(table, "plain.fillrank", method="SoftImpute")
    (tmp_path / "p.csv").write_text("u3,i2\n")
    (tmp_path / "broken.fillrank").write_bytes((tmp_path / "model.fillrank").read_bytes()[:-9])
    refusals = {
        ("model.fillrank", "p.csv", "--missing"): ["not both"],
        ("model.fillrank", "p.csv", "-o", "x.xlsx"): [".csv .tsv .json .parquet"],
        ("model.fillrank", "p.csv", "-o", "x.csv", "--json"): ["Use a .json file"],
        ("model.fillrank", "none.csv"): ["none.csv", "No such file"],
        ("plain.fillrank", "p.csv", "--level", "0.9"): ["SoftImpute has no posterior"],
        ("none.fillrank", "p.csv"): ["none.fillrank"],
        ("broken.fillrank", "p.csv"): ["broken.fillrank"],
        (table, "p.csv"): ["looks like a table", "fillrank fit"],
        ("p.csv",): ["looks like a table"],
    }
    for arguments, words in refusals.items():
        assert_refused(fillrank("predict", *arguments, stdin=""), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["standard input: the file is empty"]),
        ("user,item\n", ["a header, but no pairs"]),
        ("u3,i2\nu4\n", ["line 2: 1 fields"]),
        ("u3,i2\nu99,i2\n", ["'u99'", "unknown"]),
        ("u3,i2\nu3,i88\n", ["'i88'", "unknown"]),
        ("u99,i2\n", ["'u99'", "unknown", "--unknown prior"]),
        ("u99,i88\n", ["'user' and 'item'", "'u99', 'i88'", "--row and --column"]),
        ("one\ntwo\n", ["'one'"]),
        ("a\0b", ["zero bytes"]),
    ],
)
def test_invalid_pairs_are_rejected_with_cause_and_advice(fillrank, model, text, words):
    assert_refused(fillrank("predict", "model.fillrank", stdin=text), *words)


def test_a_complete_table_has_nothing_to_predict(fillrank, keep, tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).normal(size=(9, 6)))
    keep("t.npy")
    assert_refused(fillrank("predict", "model.fillrank", "--missing"), "no missing cell")


def test_results_are_written_in_batches(fillrank, model, monkeypatch, tmp_path):
    from fillrank.cli import predict

    monkeypatch.setattr(predict, "_BLOCK", 2)
    pairs = "".join(f"u{i},i{j}\n" for i in range(3) for j in range(3))
    ran = fillrank("predict", "model.fillrank", "--level", "0.5", "-o", "a.csv", stdin=pairs)
    assert ran.code == 0, ran.err
    assert len(read_csv(tmp_path / "a.csv")) == 10
    assert fr.load(tmp_path / "model.fillrank").method == "GASR"
