import json

import numpy as np
import pytest

from fillrank.cli import recommend, results
from helpers.refusals import assert_refused
from helpers.result_files import read_csv


@pytest.fixture
def model(keep, write_long):
    return keep(write_long())


def test_the_best_missing_columns_of_a_row(fillrank, model, matrix):
    ran = fillrank("recommend", "model.fillrank", "u3", "u0", "-n", "2", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.raw)
    expected = model.recommend(["u3", "u0"], n=2)
    assert [(each["user"], each["item"]) for each in found] == list(
        zip(expected["user"], expected["item"], strict=True)
    )
    assert all(np.isnan(matrix[int(each["user"][1:]), int(each["item"][1:])]) for each in found)


def test_a_complete_row_gets_no_recommendations(fillrank, model, matrix):
    full = next(f"u{i}" for i in range(len(matrix)) if not np.isnan(matrix[i]).any())
    assert fillrank("recommend", "model.fillrank", full).raw == "user,item,rating\n"
    assert json.loads(fillrank("recommend", "model.fillrank", full, "--json").raw) == []


def test_all_rows_to_a_file(fillrank, model, tmp_path):
    ran = fillrank(
        "recommend", "model.fillrank", "--all", "--with-seen", "-n", "3", "-o", "best.csv"
    )
    assert (ran.code, ran.out) == (0, "best.csv")
    header, *lines = read_csv(tmp_path / "best.csv")
    assert header == ["user", "item", "rating"]
    assert len(lines) == 14 * 3


def test_orders_mean_cautious_and_curious(fillrank, model):
    def found(*arguments):
        ran = fillrank("recommend", "model.fillrank", "u3", "--json", "--with-seen", *arguments)
        return [each["rating"] for each in json.loads(ran.raw)]

    mean, cautious = found(), found("--by", "cautious")
    assert max(cautious) < max(mean)
    curious = found("--by", "curious", "--seed", "1")
    assert curious == found("--by", "curious", "--seed", "1")
    assert curious != found("--by", "curious", "--seed", "2")


def test_columns_and_cells_that_are_not_recommended(fillrank, model, tmp_path):
    def found(*arguments):
        ran = fillrank("recommend", "model.fillrank", "--all", "--json", "--with-seen", *arguments)
        assert ran.code == 0, ran.err
        return {(each["user"], each["item"]) for each in json.loads(ran.raw)}

    everything = found()
    assert found("--only", "i2", "--only", "i5") == {
        (u, i) for u, i in everything if i in ("i2", "i5")
    }
    assert found("--leave-out", "i2") == {(u, i) for u, i in everything if i != "i2"}
    assert found("--only", "i2", "--only", "i5", "--leave-out", "i2") == {
        (u, i) for u, i in everything if i == "i5"
    }
    cells = {("u3", "i2"), ("u0", "i4")}
    text = "".join(f"{user},{item}\n" for user, item in sorted(cells))
    (tmp_path / "bought.csv").write_text("user,item\n" + text + text)
    assert found("--leave-out-cells", "bought.csv") == everything - cells
    ran = fillrank(
        "recommend", "model.fillrank", "--all", "--json", "--leave-out-cells", "bought.csv"
    )
    unseen = {(each["user"], each["item"]) for each in json.loads(ran.raw)}
    expected = model.recommend(n=10)
    assert unseen == {*zip(expected["user"], expected["item"], strict=True)} - cells


def test_without_its_table_nothing_can_be_left_out(fillrank, keep, write_long):
    keep(write_long(), with_data=False)
    assert_refused(fillrank("recommend", "model.fillrank", "u3"), "--with-data", "--with-seen")
    assert fillrank("recommend", "model.fillrank", "u3", "--with-seen").code == 0


def test_invalid_requests_are_rejected(fillrank, keep, model, write_long):
    keep(write_long(), "plain.fillrank", method="SoftImpute")
    refusals = {
        ("model.fillrank",): ["--all"],
        ("model.fillrank", "u3", "--all"): ["not both"],
        ("model.fillrank", "u33"): ["'u33'", "Did you mean"],
        ("plain.fillrank", "u3", "--by", "cautious"): ["--by cautious needs them"],
        ("model.fillrank", "u3", "--only", "i99"): ["'i99'"],
        ("model.fillrank", "u3", "--leave-out", "i99"): ["'i99'"],
        ("model.fillrank", "u3", "--leave-out-cells", "model.fillrank"): ["model.fillrank"],
    }
    for arguments, words in refusals.items():
        assert_refused(fillrank("recommend", *arguments), *words)


@pytest.fixture
def terminal(monkeypatch):
    """Have standard output taken for a terminal."""
    right = recommend.check_target

    def check_target(path, as_json, force, inputs):
        found = right(path, as_json, force, inputs)
        is_default = found.format == ".csv" and path is None
        return found._replace(format="terminal") if is_default else found

    monkeypatch.setattr(recommend, "check_target", check_target)


def test_a_terminal_gets_a_table_of_the_first_lines(fillrank, model, terminal, monkeypatch):
    ran = fillrank("recommend", "model.fillrank", "u3", "-n", "2", "--with-seen")
    header, *lines = [line.split() for line in ran.raw.splitlines()]
    assert header == ["user", "item", "rating"]
    assert len(lines) == 2
    monkeypatch.setattr(results, "MOST_LINES_SHOWN", 5)
    ran = fillrank("recommend", "model.fillrank", "--all")
    assert len(ran.raw.splitlines()) == 6
    assert "Only the first 5 lines are shown. Use --output FILE" in ran.err


def test_control_characters_in_labels_are_escaped(fillrank, keep, matrix, tmp_path, terminal):
    hostile = "\x1b[31mred\x1b[0m [bold]x[/] \u202e\x9b2J\nsecond line"
    lines = ["who,what,how"]
    for i, j in np.argwhere(~np.isnan(matrix)):
        name = f'"{hostile}"' if i == 0 else f"r{i}"
        lines.append(f"{name},c{j},{matrix[i, j]}")
    (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8", newline="")
    keep("t.csv")
    ran = fillrank("recommend", "model.fillrank", hostile, "-n", "1", "--with-seen")
    assert ran.code == 0, ran.err
    assert r"\x1b[31mred\x1b[0m [bold]x[/] \u202e\x9b2J\nsecond line" in ran.out
    assert not set(ran.raw) & set("\x1b\x9b\u202e")
    ran = fillrank("recommend", "model.fillrank", hostile + "?")
    assert ran.code == 2
    assert not set(ran.err) & set("\x1b\x9b\u202e")


def test_rows_without_a_candidate_are_explained(fillrank, model):
    seen = model.observations_
    row, column = seen.row_labels[seen.row_index[0]], seen.column_labels[seen.column_index[0]]
    ran = fillrank("recommend", "model.fillrank", row, "--only", column)
    assert (ran.code, ran.raw) == (0, "user,item,rating\n")
    assert "no column is left to recommend" in ran.err
    assert "--with-seen" in ran.err
    ran = fillrank("recommend", "model.fillrank", row, "--only", column, "--with-seen")
    assert len(ran.raw.splitlines()) == 2
    assert "no column" not in ran.err
