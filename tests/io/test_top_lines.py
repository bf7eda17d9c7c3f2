"""Lines above the rows of a text table: a hint of the delimiter, a title, and units."""

import io

import pytest

from fillrank import read
from fillrank.errors import InputError, ReadError
from fillrank.io.features import read_features
from helpers.same_entries import as_dict

TABLE = "who,weight,height\nAna,60.5,170\nBen,,181\nCid,71,\n"
ENTRIES = {
    ("Ana", "weight"): 60.5,
    ("Ana", "height"): 170,
    ("Ben", "height"): 181,
    ("Cid", "weight"): 71,
}
LONG = "user,item,rating\nAna,tea,5\nBen,tea,3\nBen,milk,1\n"


def read_text(text, **options):
    return read(io.StringIO(text, newline=""), format="csv", name="t.csv", **options)


@pytest.mark.parametrize("hint", ["sep=;", '"sep=;"', "SEP=;", "sep=; ", "sep=;;;"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_hint_of_the_delimiter_is_used_and_is_not_data(hint, end):
    text = f"{hint}\n" + TABLE.replace(",", ";").replace(".", ",")
    found = read_text(text.replace("\n", end))
    assert as_dict(found) == ENTRIES
    assert found.notes == ()


def test_a_hint_decides_between_delimiters():
    text = "x\ty,z\n1\t2,5\n3\t4,5\n2\t4,9\n"
    assert read_text("sep=\t\n" + text).column_labels.tolist() == ["x", "y,z"]
    assert read_text("sep=,\n" + text).column_labels.tolist() == ["z"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sep=^\n" + TABLE, r"t.csv, line 1: .*one of '::', tab, .*got 'sep=\^'.* skip=\.\.\."),
        ("sep=;\n" + TABLE, r"t.csv, line 1: each line has a single field .*got 'sep=;'. Correct"),
    ],
)
def test_a_hint_that_does_not_fit_is_refused(text, message):
    with pytest.raises(ReadError, match=message):
        read_text(text)
    assert as_dict(read_text(text, skip=1)) == ENTRIES


@pytest.mark.parametrize(
    ("title", "lines", "shown"),
    [
        ("Results of 2024\n", "Line 1 was", "Results of 2024"),
        ("Results of 2024,,\n", "Line 1 was", "Results of 2024"),
        ("Results of 2024\n\n", "Line 1 was", "Results of 2024"),
        ("\nResults of 2024\n,,\n", "Line 2 was", "Results of 2024"),
        ("Results of 2024,,\nSource: ours\n\n", "Lines 1 to 2 were", "Results of 2024"),
        ('"Results, of 2024",,\n', "Line 1 was", '"Results, of 2024"'),
        ("Results, of 2024, of Ana, and Ben\n", "Line 1 was", "Results, of 2024, of Ana, and Ben"),
        ("# made by hand\n", "Line 1 was", "# made by hand"),
        ("sep=,\nResults of 2024\n", "Line 2 was", "Results of 2024"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_title_is_skipped_with_a_note(title, lines, shown, end):
    found = read_text((title + TABLE).replace("\n", end))
    assert as_dict(found) == ENTRIES
    (note,) = found.notes
    assert note.startswith(f"{lines} skipped: a title, {shown!r}.")
    assert note.endswith("set skip=0.")


def test_titles_of_other_tables():
    assert as_dict(read_text("Ratings\n" + LONG)) == as_dict(read_text(LONG))
    assert as_dict(read_text("Ratings,,\n" + LONG)) == as_dict(read_text(LONG))
    survey = read_text("Survey,,\nwho,q1,q2\nAna,yes,no\nBen,no,yes\nCid,yes,no\n")
    assert survey.column_labels.tolist() == ["q1", "q2"]
    two = read_text("Weights\nwho,weight\nAna,5\nBen,6\nCid,\n")
    assert as_dict(two) == {("Ana", "weight"): 5, ("Ben", "weight"): 6}


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_title_may_have_a_comma_before_a_number_if_it_is_no_row(delimiter):
    table = "who,a,b,c\nAna,1,2,3\nBen,4,,6\nCid,5,7,9\n".replace(",", delimiter)
    assert as_dict(read_text("Lakes of Switzerland, 2023\n" + table)) == as_dict(read_text(table))
    for row in ("Dan,4\n", "Dan,4,5\n", "Dan, 4 5\n", "Mr, Dan, 4\n"):
        with pytest.raises(ReadError, match=r"line [12]\b"):
            read_text(row + table)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Ana,,\nBen,1.5,2\nCid,3,4\n", ["Ana", "Ben", "Cid"]),
        ("Ana,,\nBen,yes,no\nCid,no,no\nDan,yes,yes\n", ["Ana", "Ben", "Cid", "Dan"]),
        ("level\nAna,high\nBen,low\nCid,low\n", ["Ana", "Ben", "Cid"]),  # as R writes it
        ("weight\nAna,5\nBen,6\n", ["Ana", "Ben"]),
        ('"","weight"\n"Ana",5\n"Ben",6\n', ["Ana", "Ben"]),
        ("who,weight\nAna,\nBen,6\n", ["Ana", "Ben"]),
        ("who,weight,height\nAna,,\nBen,6,5\nCid,7,5\n", ["Ana", "Ben", "Cid"]),
        ("who,weight,height\nAna,NA,-\nBen,6,5\nCid,7,5\n", ["Ana", "Ben", "Cid"]),
        ("Ana,,\nBen,6,tall\n", ["Ana", "Ben"]),  # Ben could be a header, but has no rows
    ],
)
def test_rows_and_headers_are_not_taken_for_titles(text, rows):
    found = read_text(text)
    assert found.row_labels.tolist() == rows
    assert not any("skipped" in note for note in found.notes)


@pytest.mark.parametrize("header", ["who,q1,q2,\n", "who,q1,q2,,\n", "q1,q2,,\n"])
def test_a_header_with_delimiters_at_its_end_is_no_title(header):
    rows = "Ana,never,maybe\nBen,often,no\nCid,often,no\nDan,often,yes\n"  # Ana's could be a header
    with pytest.raises(ReadError, match=r"line 1: [45] fields, but the table has 3"):
        read_text(header + rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2024\n" + TABLE, "line 1: 1 field, but the table has 3"),
        ("Results, 2024, 5, 6\n" + TABLE, "line 1: 4 fields, but the table has 3"),
        ("who,weight\n1,2,3,4\n5,6,7,8\n9,8,7,6\n", "line 1: 2 fields, but the table has 4"),
        ("p0|5|4\n" + TABLE, "line 1: 1 field, but the table has 3"),  # of another table
        ("p0 5 4\n" + TABLE, "line 1: 1 field, but the table has 3"),
        ("p0,5,4\n" + TABLE.replace(",", ";"), "line 1: 1 field, but the table has 3"),
        ("Readings\n1.5,2,3\n2,,4\n3,5,6\n", "line 1: 1 field, but the table has 3"),
        ("Ana\nBen,1.5,2\nCid,3,4\n", "line 1: 1 field, but the table has 3"),  # may be a row
        (",Body,\n" + TABLE, "line 2, column 'Body' must be a number"),
    ],
)
def test_what_may_be_a_title_is_refused_with_the_setting_to_use(text, message):
    with pytest.raises(ReadError, match=rf"{message}.*skip them with skip=\.\.\."):
        read_text(text)
    assert read_text(text, skip=1).n_entries >= 4


def test_text_above_a_table_is_refused_with_the_setting_to_use():
    text = "Dear all\nthis is\tmine; yours\nsee what it has\nx,y\n1,2\n"
    with pytest.raises(ReadError, match=r"the same number of fields .* skip them with skip=\.\.\."):
        read_text(text)
    assert read_text(text, skip=3).shape == (1, 2)


def test_units_below_the_header_are_skipped_with_a_note():
    header, rest = TABLE.split("\n", 1)
    found = read_text(f"{header}\n,kg,cm\n{rest}")
    assert as_dict(found) == ENTRIES
    assert found.notes == (
        "Line 2 was skipped: units or further names of columns, 'kg,cm'. If this is part of the "
        "table, set skip=0.",
    )
    both = read_text(f"Results\n\n{header}\n,(kg),(cm)\n{rest}")
    assert as_dict(both) == ENTRIES
    assert [note[:6] for note in both.notes] == ["Line 1", "Line 4"]
    assert read_text("a,b\nkg,°C\n1,2\n,4\n").shape == (2, 2)
    for unit in ("kg", "(kg)"):  # a known one
        text = f"who,a,b\n,{unit},{unit}\nAna,1,2\nBen,,4\n"
        assert read_text(text).shape == (2, 2)
    (note,) = read_text(f'{header}\n,"kg\n(dry)",cm\n{rest}').notes
    assert note.startswith("Lines 2 to 3 were skipped")
    without = "who,a,pH,b\n,kg,-,cm\nAna,1,7,2\nBen,,6,4\n"  # one column has no unit
    assert read_text(without).shape == (2, 3)


@pytest.mark.parametrize(
    "line",
    [
        "Dan,unknown,refused",  # a row label
        ",unknown,unknown",  # a word for missing values
        ",kg,5",  # an observed value
        ",kg,",
        ",kg,-",
    ],
)
def test_a_line_that_may_be_a_row_is_not_skipped(line):
    header, rest = TABLE.split("\n", 1)
    with pytest.raises(ReadError, match=r"line 2.*(If this line has units|label is missing)"):
        read_text(f"{header}\n{line}\n{rest}")


def test_a_line_above_missing_values_is_not_skipped():
    header = TABLE.split("\n", 1)[0]
    with pytest.raises(ReadError, match="line 2, column 'weight' must be a number"):
        read_text(f"{header}\n,kg,cm\nAna,1,NA\nBen,2,\n")


def test_a_line_with_words_for_missing_values_is_a_row():
    text = "id,weight,height\n7a,absent,refused\n8,1,2\n9,,4\n"
    assert read_text(text).shape == (2, 2)
    found = read_text(text, missing_values=["absent", "refused"])
    assert found.row_labels.tolist() == ["7a", "8", "9"]
    assert found.n_entries == 3
    assert not any("skipped" in note for note in found.notes)


def test_a_line_with_a_category_is_not_skipped():
    text = "town,weight,height\nBern,kg,cm\nBern,1,2\nChur,3,4\nBern,5,6\n"
    with pytest.raises(ReadError, match="line 2, column 'weight' must be a number, got 'kg'"):
        read_text(text)


def test_the_number_of_lines_to_skip_is_given():
    assert as_dict(read_text("1,2,3\nx\n" + TABLE, skip=2)) == ENTRIES
    assert read_text("1,2,3\nx\n" + TABLE, skip=2).notes == ()
    with pytest.raises(ReadError, match="line 1: 1 field"):
        read_text("Results\n" + TABLE, skip=0)
    with pytest.raises(ReadError, match=r"line 2, column 'weight' must .*'kg'"):
        read_text("who,weight,height\n,kg,cm\nAna,1,2\n", skip=0)


@pytest.mark.parametrize("skip", [-1, 1.5, True, "1"])
def test_skip_is_a_whole_number(skip):
    with pytest.raises(InputError, match="skip must be a whole number of at least 0"):
        read_text(TABLE, skip=skip)


def test_skip_is_for_text_files(tmp_path):
    (tmp_path / "t.json").write_text('[{"a": 1, "b": 2}]')
    with pytest.raises(InputError, match=r"skip: .* text files, not for \.json"):
        read(tmp_path / "t.json", skip=1)
    with pytest.raises(ReadError, match=r"t\.csv, skip: the file has no further lines; got 9"):
        read_text(TABLE, skip=9)


@pytest.mark.parametrize("dashes", ["|---|---|", "| :-- | --: |", "|:-:|-|", "---|---"])
def test_markdown_tables_are_refused_by_name(dashes):
    lines = ["| a | b |", dashes.replace("|-|", "|---|"), "| 1 | 2 |", "| 3 | |"]
    with pytest.raises(
        ReadError, match=r"line 2: this is a Markdown table.*Save the table as CSV"
    ) as e:
        read_text("\n".join(lines))
    assert "skip" not in str(e.value)
    assert read_text("a|b\n-|-\n1|2\n3|\n").shape == (3, 2)  # dashes that are missing values


def test_features_may_have_a_title_and_units(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("sep=;\nPeople\nwho;age;height\n;y;cm\nAna;30;170\nBen;;181\n")
    features = read_features(path)
    assert features.labels.tolist() == ["Ana", "Ben"]
    assert features.fields["height"].tolist() == [170, 181]
    assert features.notes == (  # `skip` is for lines of the table, not of this file
        f"{path}: Line 2 was skipped: a title, 'People'.",
        f"{path}: Line 4 was skipped: units or further names of columns, 'y;cm'.",
    )
