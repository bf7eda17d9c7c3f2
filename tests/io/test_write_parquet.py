import numpy as np
import pandas as pd
import polars as pl
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, OutputError

MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


def part(first, n=3):
    return {"who": [f"p{i}" for i in range(first, first + n)], "value": np.arange(n) + 0.5}


@pytest.mark.parametrize("library", MAKERS)
def test_a_stream_is_one_file(tmp_path, library):
    path = tmp_path / "all.parquet"
    fr.write_parquet(path, (MAKERS[library](part(k)) for k in (0, 3, 6)))
    read = pl.read_parquet(path)
    assert read["who"].to_list() == [f"p{i}" for i in range(9)]
    assert read["value"].to_list() == [0.5, 1.5, 2.5] * 3


def test_a_table_is_written_alone(tmp_path):
    fr.write_parquet(tmp_path / "one.parquet", pl.DataFrame(part(0)))
    assert pl.read_parquet(tmp_path / "one.parquet").shape == (3, 2)


def test_a_table_is_written_before_the_next_is_made(tmp_path, monkeypatch):
    import pyarrow.parquet

    order = []

    class Writer(pyarrow.parquet.ParquetWriter):
        def write_table(self, table, **settings):
            order.append("written")
            super().write_table(table, **settings)

    def tables():
        for k in range(3):
            order.append("made")
            yield pl.DataFrame(part(k))

    monkeypatch.setattr(pyarrow.parquet, "ParquetWriter", Writer)
    fr.write_parquet(tmp_path / "all.parquet", tables())
    assert order == ["made", "written"] * 3


def test_predictions_are_read_as_written(tmp_path):
    data, _ = fr.synthetic(30, 20, rank=1, noise=0.1, missing=0.4, random_state=0)
    model = fr.SoftImpute(penalty=1.0).fit(data)
    path = tmp_path / "missing.parquet"
    fr.write_parquet(path, model.predict_missing())
    again = fr.read(path)
    assert len(again) == 30 * 20 - len(data)
    np.testing.assert_array_equal(again.values, model.predict(again.rows, again.columns))


def failing(error):
    yield pl.DataFrame(part(0))
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_the_old_file_stays_if_anything_fails(tmp_path, error):
    path = tmp_path / "all.parquet"
    fr.write_parquet(path, pl.DataFrame(part(7)))
    before = path.read_bytes()
    expected = OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        fr.write_parquet(path, failing(error))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_tables_that_differ(tmp_path):
    other = pl.DataFrame({"who": ["x"], "other": [1.0]})
    with pytest.raises(InputError, match="number 2 differs from the first"):
        fr.write_parquet(tmp_path / "all.parquet", [pl.DataFrame(part(0)), other])
    assert not list(tmp_path.iterdir())


def test_inputs_that_are_not_tables(tmp_path):
    with pytest.raises(InputError, match="the stream was empty"):
        fr.write_parquet(tmp_path / "none.parquet", [])
    with pytest.raises(InputError, match="got ndarray"):
        fr.write_parquet(tmp_path / "none.parquet", [np.zeros(3)])


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(NotSupportedError, match=r"fillrank\[tables\]"):
        fr.write_parquet(tmp_path / "all.parquet", pl.DataFrame(part(0)))
