"""Columns of text: what they contain."""

import numpy as np
import pandas as pd
import pytest

from fillrank.errors import InputError
from fillrank.table.missing_values import find_code, given_missing_values
from fillrank.table.notes import describe_columns
from fillrank.table.number_text import COMMA, NO_STYLE, apply_format, parse_value
from fillrank.table.text_values import LeftOut, judge_text

INF = np.inf


def place(position):
    return f"line {position}"


def judge(texts, *, missing=None, decimal_comma=False):
    style = NO_STYLE._replace(base=COMMA) if decimal_comma else NO_STYLE
    return judge_text(texts, place, given_missing_values(missing), style)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("1.5", (1.5, 1.5)),
        (" -3e-2 ", (-0.03, -0.03)),
        ("<0.5", (-INF, 0.5)),
        ("< 0.5", (-INF, 0.5)),
        ("<=3", (-INF, 3)),
        ("≤3", (-INF, 3)),
        ("> 10", (10, INF)),
        (">=.5", (0.5, INF)),
        ("65+", (65, INF)),
        ("0.2-0.5", (0.2, 0.5)),
        ("0.2 - 0.5", (0.2, 0.5)),
        ("0.2 to 0.5", (0.2, 0.5)),
        ("-5 to -3", (-5, -3)),
        ("-5--3", (-5, -3)),
        ("1e-3-1e-2", (0.001, 0.01)),
        ("21%", (21, 21)),
        ("<5 %", (-INF, 5)),
    ],
)
def test_values_in_text(text, ends):
    assert parse_value(text)[:2] == ends


@pytest.mark.parametrize(
    "text", ["tea", "1_000", "<", "<x", "5-3", "1-2-3", "%", "2020-01-05", "1,5", "+", "0.2 or 0.5"]
)
def test_other_text_is_no_value(text):
    assert parse_value(text) is None


def test_a_decimal_comma():
    assert parse_value("<0,5", COMMA)[:2] == (-INF, 0.5)
    assert parse_value("0,2-0,5", COMMA)[:2] == (0.2, 0.5)


def test_numbers_with_missing_words():
    found = judge(["1.5", None, "n/a", "2", "-"])
    np.testing.assert_array_equal(found.values, [1.5, np.nan, np.nan, 2.0, np.nan])
    assert found.upper is None
    assert not found.type.is_coded


def test_limits_have_two_ends():
    found = judge(["0.7", "<0.5", None, "2-3"])
    np.testing.assert_array_equal(found.values, [0.7, -INF, np.nan, 2.0])
    np.testing.assert_array_equal(found.upper, [0.7, 0.5, np.nan, 3.0])
    assert found.remark[:3] == ("limits", "<0.5", 2)


def test_percentages():
    assert judge(["21%", "3 %", "NA"]).values[:2].tolist() == [21.0, 3.0]
    with pytest.raises(InputError, match=r"line 1: some values .* percentages.* got '0.03'"):
        judge(["21%", "0.03", "5%"])


def test_a_word_among_numbers_is_refused():
    with pytest.raises(InputError, match=r"line 2 must be a number, got 'tea'") as e:
        judge(["1", "2", "tea", "4"])
    assert "missing_values=['tea']" in str(e.value)
    assert judge(["1", "2", "tea", "4"], missing=["tea"]).values[3] == 4.0


def test_a_few_numbers_among_words_are_levels():
    found = judge(["low", "high", "1", "low", "high"])
    assert found.type.levels == ("1", "high", "low")


@pytest.mark.parametrize(
    ("texts", "levels"),
    [
        (["yes", "no", "no"], ("no", "yes")),
        (["Y", "N", "Y"], ("N", "Y")),
        (["TRUE", "FALSE", "TRUE"], ("FALSE", "TRUE")),
    ],
)
def test_yes_and_no_are_in_order(texts, levels):
    found = judge([*texts, None])
    assert found.type.levels == levels
    assert found.type.values == "text"
    assert found.remark.what == "yes_no"
    assert np.isnan(found.values[-1])


def test_several_spellings_of_yes_are_levels():
    assert judge(["yes", "Yes", "no", "yes", "no", "Yes"]).type.levels == ("Yes", "no", "yes")


def test_groups_are_ordered_levels():
    found = judge(["26-40", "<18", "18-25", ">65", "18-25", "26-40", "<18", ">65"])
    assert found.type.levels == ("<18", "18-25", "26-40", ">65")
    assert found.type.is_ordered
    # With an exact number, or if they overlap, they are limits.
    assert judge(["18-25", "18-25", "26-40", "26-40", "30"]).upper is not None
    assert judge(["18-25", "18-25", "20-40", "20-40"]).upper is not None


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["a", "a", None], "constant"),
        (["a", "b", "c"], "distinct"),
        ([f"{i}x" for i in range(80)] * 2, "distinct"),
        ([f"{i}x" for i in range(201)] * 9, "distinct"),
        (["", " "], "empty"),
    ],
)
def test_text_that_says_nothing_is_left_out(texts, why):
    found = judge(texts)
    assert isinstance(found, LeftOut)
    assert found.remark.what == why


def test_dates():
    found = judge(["1970-01-02", None, "2020-01-01", "1970-01-02"])
    np.testing.assert_array_equal(found.values, [1.0, np.nan, 18262.0, 1.0])
    assert found.type.values == "datetime"
    assert judge(["2020-02-30", "2020-01-01"] * 2).type.values == "text"


def test_blank_text_is_missing_and_none_is_a_level():
    found = judge(["tea", "", "None", "tea", "None"])
    assert found.type.levels == ("None", "tea")
    assert np.isnan(found.values[1])


def test_missing_values():
    missing = given_missing_values([99, "unknown", "-9"])
    assert missing.numbers == (99.0, -9.0)
    for text in ("99", "99.0", " unknown", "-9"):
        assert missing.has_text(text)
    assert not missing.has_text("9")
    np.testing.assert_array_equal(missing.remove(np.array([1.0, 99.0])), [1.0, np.nan])
    assert given_missing_values("unknown").texts == {"unknown"}
    assert not given_missing_values(None)
    with pytest.raises(InputError, match="missing_values must be a list of numbers and texts"):
        given_missing_values([True])


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ([1, 2, 3, 2, -999, -999], (-999.0, 2)),
        ([0, 1, 0, 1, 1, 99, 99], (99.0, 2)),
        ([0, 1, 0, 1, 1, 99], None),  # once
        ([0, 1, 2, 5, 8, -1, -1], None),  # not far away
        ([95, 98, 97, 99, 99], None),
        ([1, 2, 3, 2, -998, -998], None),  # not a code
        ([-9, -9, -9, 1], None),  # most values
        ([20, 45, 75, 31, -99, -99], (-99.0, 2)),  # no other value is negative
        ([1, 2, 3, 4, 5, -9, -9], (-9.0, 2)),
        ([-3, 2, 8, -9, -9], None),
        ([], None),
    ],
)
def test_numbers_that_may_mean_missing(values, code):
    assert find_code(np.array([*values, np.nan], dtype=float)) == code


@pytest.mark.parametrize("limit", ["<0,5", "< 0,5", ">0,500"])
def test_a_decimal_comma_in_limits_only(limit):
    """Spreadsheets have numbers with a point, whatever the language; limits are text."""
    texts = ["3.61", limit, "2.25", "0.7", None]
    found = judge(texts)
    ends = (-INF, 0.5) if limit[0] == "<" else (0.5, INF)
    assert (found.values[1], found.upper[1]) == ends
    assert found.values[[0, 2]].tolist() == [3.61, 2.25]
    assert apply_format("1.5", found.format) == "1.5"
    assert apply_format("1.5", judge(["3,61", "<0,5", "2,25"]).format) == "1,5"
    assert judge(["3.6", "<1,000", "2"]).upper[1] == 1000


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["yes", "no", "yes", "no", "-99", "-99"], ("code", "-99", 2)),
        (["yes", "no", "yes", "no", "-99"], ("category", "", 0)),  # once
        (
            ["tea", "1", "tea", "milk", "tea", "-99", "-99"],
            ("category", "", 0),
        ),  # one number of several
        (["tea", "7", "tea", "7", "milk"], ("category", "", 0)),  # not a code
    ],
)
def test_a_number_among_words_may_mean_missing(texts, found):
    assert judge(texts).remark[:3] == found


def test_missing_values_without_a_name():
    assert given_missing_values(None) == given_missing_values([None])
    assert given_missing_values(pd.NA) == given_missing_values(None)
    assert given_missing_values([pd.NaT, -1]).numbers == (-1.0,)


def test_numbers_in_brackets_are_negative():
    found = judge(["(1,250.5)", "300", "(7)", "-2", None])
    np.testing.assert_array_equal(found.values, [-1250.5, 300.0, -7.0, -2.0, np.nan])
    assert apply_format("-1234.5", found.format) == "(1,234.5)"
    found = judge(["($5.00)", "$7.50", "$8"])
    assert found.values[0] == -5.0
    assert apply_format("-3", found.format) == "($3)"
    # No number has two signs, and a list has its items in brackets.
    for text in ("(-5)", "(<5)", "((5))", "(5", "(5-7)"):
        assert parse_value(text) is None
    assert judge(["(1)", "(2)", "(2)", "(1)"]).type.levels == ("(1)", "(2)")


def test_words_for_missing_values_of_other_languages():
    assert np.isnan(judge(["1.5", "n.a.", "–", "2"]).values).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    "texts",
    [
        ["1.5.2024", "2.5.2024", "2.5.2024"],
        ["5/1/24", "5/2/24", "5/2/24"],
        ["13:00", "9:30:05", "13:00"],
        ["2024-05-01 13:00", "2024-05-01T14:00Z", "2024-05-01 13:00"],
    ],
)
def test_dates_that_are_not_read_are_named(texts):
    found = judge(texts)
    assert found.type.values == "text"
    (note,) = describe_columns([("when", found.remark)])
    assert note == (
        f"Column 'when' holds dates or times such as {texts[0]!r}, taken as text: only dates such as "
        "2024-05-01 are read."
    )
    left_out = judge(sorted(set(texts)))
    assert isinstance(left_out, LeftOut)
    (note,) = describe_columns([("when", left_out.remark)])
    assert " and is left as it is: only dates such as 2024-05-01 are read." in note


@pytest.mark.parametrize(
    ("texts", "example"),
    [
        (["yes", "Y", "no", "no"], "'yes' and 'Y'"),
        (["Bern", "Chur", "bern", "Bern"], "'Bern' and 'bern'"),
        (["Y", "Ypsilon", "X", "X"], None),
        (["yes", "no", "yes", "yes"], None),
    ],
)
def test_spellings_of_one_word_are_named(texts, example):
    remark = judge(texts).remark
    assert (remark.what == "spellings") == (example is not None)
    assert remark.example == (example or "")


def test_text_that_hardly_repeats_is_left_out():
    names = [f"person {i}" for i in range(19)]
    assert judge([*names, "person 3"]).remark.what == "distinct"
    assert judge([f"town {i % 10}" for i in range(12)]).remark.what == "category"


@pytest.mark.parametrize("mark", [" ", "\u00a0", "\u202f", "'", "’"])
def test_numbers_are_written_with_the_mark_that_the_column_has(mark):
    found = judge([f"1{mark}250", "300", f"2{mark}000"])
    assert found.values.tolist() == [1250.0, 300.0, 2000.0]
    assert apply_format("45678.5", found.format) == f"45{mark}678.5"


@pytest.mark.timeout(60)  # with time that grows with the square of the digits, an hour
def test_the_time_of_a_long_number_grows_with_its_length():
    for text in ("9" * 200_000 + "x", "<" + "9" * 200_000 + "x", "9" * 200_000 + "-x"):
        assert parse_value(text) is None
