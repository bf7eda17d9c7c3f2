"""The benchmark of limits by noise, missing cells and size: its oracle, and runs that are resumed."""

import json

import numpy as np
import pytest

import limits
from limits import Cell, Table, main, oracle_predictions, run, simulate, summarise

CELL = Cell(30, 20, 0.8, 3.0, 0)


def test_tables_have_the_share_of_missing_cells_and_an_entry_in_each_column():
    table = simulate(CELL._replace(missing=0.95))
    assert table.seen.sum() == 30
    assert table.seen.any(axis=0).all()
    np.testing.assert_array_equal(np.isfinite(table.values), table.seen)


def test_the_noise_has_the_stated_ratio():
    table = simulate(Cell(400, 100, 0.5, 4.0, 0))
    # 40,000 cells: the standard error of the standard deviation 0.5 is 0.002.
    assert (table.complete - table.signal).std() == pytest.approx(0.5, abs=0.01)


def test_oracles_are_exact_without_noise_and_fall_back_to_the_prior_mean():
    table = simulate(CELL._replace(missing=0.2))
    exact = table._replace(complete=table.signal)
    for predicted in oracle_predictions(exact, 1e-5):
        np.testing.assert_allclose(predicted, table.signal, atol=1e-3)
    told_columns, _ = oracle_predictions(table._replace(seen=np.zeros_like(table.seen)), 1.0)
    np.testing.assert_allclose(told_columns, np.broadcast_to(table.means, told_columns.shape))


def test_the_oracle_shrinks_a_single_entry():
    one = np.ones((1, 1))
    table = Table(2 * one, one > 0, np.zeros(1), np.ones((1, 3)), np.ones((1, 3)))
    told_columns, _ = oracle_predictions(table, 1.0)
    # Prior variance 3 and noise variance 1: three quarters of the value.
    assert told_columns == pytest.approx(1.5)


def _measured(cell):
    errors = {"model": 1.0, "column_mean": 4.0, "told_columns": 0.25, "told_rows": 0.16}
    return cell._asdict() | errors | {
        "signal_coverage": 0.9, "observation_coverage": 0.8, "rank": 3 + cell.seed, "seconds": 0.0,
    }  # fmt: skip


def test_an_interrupted_run_continues(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(limits, "measure", lambda cell: asked.append(cell) or _measured(cell))
    path, cells = tmp_path / "new" / "limits.jsonl", [CELL, CELL._replace(seed=1)]
    run(cells[:1], path)
    with path.open("a") as lines:
        lines.write("\n" + json.dumps(_measured(cells[1]))[:40])  # killed while it wrote
    results = run(cells, path)
    assert asked == cells
    assert results == [_measured(cell) for cell in cells]
    assert run(cells, path) == results
    assert asked == cells


def test_a_summary():
    (summary,) = summarise([_measured(CELL), _measured(CELL._replace(seed=1))]).values()
    assert summary[:4] == pytest.approx((0.5, 2.0, 0.9, 0.8))
    assert summary.ranks == (3, 4)


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(limits, "measure", _measured)
    results, picture = tmp_path / "limits.jsonl", tmp_path / "limits.png"
    main(["--quick", "--results", str(results), "--picture", str(picture)])
    printed = capsys.readouterr().out
    assert "| 100 x 40 | 95% | 200 | 10 | 0.50 | 2.00 | 90% | 80% | 3 |" in printed
    assert picture.stat().st_size > 1000
