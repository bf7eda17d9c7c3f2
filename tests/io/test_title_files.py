"""Files with titles of rows or columns."""

import gzip

import numpy as np
import polars as pl
import pytest

import fillrank as fr
from fillrank.errors import InputError, ReadError
from fillrank.io.titles import read_titles
from fillrank.runtime import memory as memory_module

TEXT = (
    'movieId,title,genres\n1,Toy Story (1995),Comedy\n2,"Bug\'s Life, A (1998)",Comedy\n3,Antz,NA\n'
)
TITLES = {1: "Toy Story (1995)", 2: "Bug's Life, A (1998)", 3: "Antz"}


@pytest.fixture
def write(tmp_path):
    """Write a text and give the path of the file."""

    def writing(text, name="films.csv"):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return writing


@pytest.mark.parametrize(
    ("delimiter", "name"),
    [(",", "a.csv"), ("\t", "a.tsv"), (";", "a.csv.gz"), ("|", "a.dat"), ("::", "a.txt")],
)
def test_text_in_every_format(write, delimiter, name):
    text = f"id{delimiter}title\n7{delimiter}Léon\n8{delimiter}Heat\n"
    assert fr.read_titles(write(text, name)) == {7: "Léon", 8: "Heat"}


def test_a_file_of_movielens_with_a_header(write):
    assert read_titles(write(TEXT)) == TITLES
    assert read_titles(write(TEXT, "movies.dat")) == TITLES
    assert read_titles(write("\ufeff" + TEXT)) == TITLES


@pytest.mark.parametrize(
    ("header", "column"),
    [
        ("id,price,about", 2),  # the first column of text
        ("id,about,title", 2),
        ("id,subtitle,title", 2),
        ("id,about,Product Name", 2),
        ("id,label,name", 2),
        ("id,name,label", 1),
        ("id,film_title,name", 1),
    ],
)
def test_the_column_of_titles(write, header, column):
    cells = ["1", "3" if "price" in header else "x", "y"]
    assert read_titles(write(f"{header}\n{','.join(cells)}\n2,4,z\n"))[1] == cells[column]


def test_titles_that_are_numbers(write):
    assert read_titles(write("id,year,title\n1,1956,1984\n2,2009,300\n")) == {1: "1984", 2: "300"}


def test_the_labels_are_in_the_column_that_has_most_of_them(write):
    path = write(",title,item\n0,Tea,5\n1,Milk,6\n2,Beer,7\n")
    assert read_titles(path) == {0: "Tea", 1: "Milk", 2: "Beer"}
    assert read_titles(path, np.array([7, 5])) == {7: "Beer", 5: "Tea"}
    first = write("name,code\nTea,A1\nMilk,A2\n", "first.csv")
    assert read_titles(first, ["A2", "A3"]) == {"A2": "Milk", "A3": "A3"}


def test_labels_that_are_not_in_the_first_column(write):
    path = write("name,id\nTea,1\nMilk,2\n")
    assert read_titles(path, [1, 2]) == {1: "Tea", 2: "Milk"}
    with pytest.raises(ReadError, match=r"labels in 'name'.* in another column, set labels=\.\.\."):
        read_titles(path)


def test_labels_have_the_type_of_the_table(write):
    path = write("id,title\n1,Tea\n2,Milk\n")
    for labels in ([1, 2], ["1", "2"], np.array([1, 2], dtype=np.int16)):
        found = read_titles(path, labels)
        assert list(found) == list(labels)
        assert list(found.values()) == ["Tea", "Milk"]
    days = np.array(["2024-01-31", "2024-02-29"], dtype="datetime64[D]")
    found = read_titles(write("day,title\n2024-02-29,leap\n"), days)
    assert found == {days[0]: "2024-01-31", days[1]: "leap"}
    assert list(read_titles(write("id,title\n007,Bond\n1,x\n"))) == ["007", "1"]


def test_missing_titles_are_their_labels(write):
    assert read_titles(write("id,title\n1,\n2,NA\n3,Tea\n")) == {1: "1", 2: "2", 3: "Tea"}


def test_a_title_is_one_line(write):
    assert read_titles(write('id,title\n1," two\r\n lines "\n')) == {1: "two lines"}


def test_a_pair_may_be_repeated_but_not_with_another_title(write):
    ratings = "user,item,title,rating\n1,5,Tea,3\n2,5,Tea,4\n2,6,Milk,1\n3,5,,2\n"
    path = write(ratings)
    assert read_titles(path, [5, 6]) == {5: "Tea", 6: "Milk"}
    path = write(ratings + "\n3,6,Beer,2\n")
    words = r"films.csv, line 7, column 'title': the label '6' has two titles, 'Milk' and 'Beer'"
    with pytest.raises(ReadError, match=words):
        read_titles(path, [5, 6])


OLD = "267|unknown||||1|0\r\n543|Misérables, Les (1995)|01-Jan-1995||x|0|0\r\n"
NEW = '1::Toy Story (1995)::Animation|Comedy\n2::"Great" Cats::Musical\n3::Año::Drama\n'


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_files_of_movielens_without_a_header(write, encoding):
    old = {267: "unknown", 543: "Misérables, Les (1995)"}
    new = {1: "Toy Story (1995)", 2: '"Great" Cats', 3: "Año"}
    assert read_titles(write(OLD.encode(encoding), "u.item")) == old
    assert read_titles(write(NEW.encode(encoding), "movies.dat")) == new
    assert read_titles(write(NEW.encode(encoding), "movies.dat.gz"), ["3", "9"]) == {
        "3": "Año",
        "9": "9",
    }


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("", "films.csv", "films.csv: the file is empty"),
        ("", "movies.dat", "movies.dat: the file is empty"),
        ("", "u.item", "titles are read from text and Parquet"),
        ("id,title\n", "films.csv", "a header, but no lines below it"),
        ("1,Tea\n2,Milk\n", "films.csv", "the first line must be a header.*got '1'"),
        ("1|24|M|technician\n2|53|F|other\n", "u.user", "titles are read from text and Parquet"),
        ("id,x,y\n1,2,3\n4,5,6\n", "films.csv", "films.csv: .* a column of titles, which is text; .* it "
         "has 'x', 'y'. Name the column of titles 'title'"),
        ("id,title\n1,Tea\n2,Usual Suspects, The\n3,Milk\n", "films.csv",
         r"films.csv, line 3: 3 fields, but the table has 2 \(delimiter ','\).*in quotes"),
        ("id,title\n1,Tea\n,Milk\n", "films.csv", r"line 3, column 'id': the label is missing"),
        ("id,title\n1,Tea\n\n1,Milk\n2,x\n", "films.csv", "line 4, column 'title': the label '1'"),
        ('id,title\n1,"Tea\n2,Milk\n', "films.csv", "films.csv: a quote is not closed"),
        (b"id,title\n1,Mis\xe9rables\n", "films.csv", "films.csv, line 2: not UTF-8 text"),
        ("1::Tea::x\n2:Milk\n", "movies.dat", r"movies.dat, line 2: .*'::' between them; got '2:Milk'"),
        ("1::Tea::x\n1::Milk::x\n", "movies.dat", "movies.dat, line 2: the label '1' has two titles"),
        (b"1::Tea\x00::x\n", "movies.dat", "movies.dat: not a text file"),
        (b"PAR1", "films.parquet", "not a complete Parquet file"),
        ("x", "films.xlsx", "titles are read from text and Parquet"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_in_words(write, text, name, words):
    with pytest.raises(ReadError, match=words):
        read_titles(write(text, name))


def test_labels_that_match_nothing_are_refused(write):
    words = "films.csv: .* none of the labels of the table, 'a', 'b'; its own labels are '1', '2'"
    with pytest.raises(InputError, match=words):
        read_titles(write("id,title\n1,Tea\n2,Milk\n"), ["a", "b"])
    with pytest.raises(InputError, match=r"movies.dat: the file has none of the labels"):
        read_titles(write(NEW, "movies.dat"), [77])


@pytest.mark.parametrize("name", ["peeple.csv", "movies.dat", "u.item"])
def test_a_path_without_a_file(tmp_path, name):
    with pytest.raises(ReadError, match=f"{name}: the file does not exist"):
        read_titles(tmp_path / name)


def test_parquet(tmp_path):
    path = tmp_path / "films.parquet"
    frame = pl.DataFrame(
        {"id": [1, 2, 3], "year": [1995, None, 1998], "what": ["Heat", None, "Antz"]}
    )
    frame.write_parquet(path)
    assert read_titles(path) == {1: "Heat", 2: "2", 3: "Antz"}
    frame.select("what", "year", "id").write_parquet(path)
    assert read_titles(path, ["3", "4"]) == {"3": "Antz", "4": "4"}
    pl.DataFrame({"id": [1, 1], "what": ["Heat", "Antz"]}).write_parquet(path)
    with pytest.raises(
        ReadError, match=r"films.parquet, column 'what': the label '1' has two titles"
    ):
        read_titles(path)
    pl.DataFrame({"id": [1, None], "what": ["Heat", "Antz"]}).write_parquet(path)
    with pytest.raises(ReadError, match=r"films.parquet, column 'id': the label is missing"):
        read_titles(path)


def test_a_file_of_more_than_fits_in_memory(write, monkeypatch):
    path = write("id,title\n" + "1,Tea\n" * 2000)
    monkeypatch.setattr(memory_module, "_of_machine", lambda: 40_000)
    with pytest.raises(InputError, match=r"films.csv: a table of up to 2,002 lines and 2 columns"):
        read_titles(path)


def test_a_folder_is_refused_as_such(tmp_path):
    with pytest.raises(ReadError, match="the path is a folder"):
        fr.read_titles(tmp_path)
