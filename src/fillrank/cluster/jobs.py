"""Predictions and recommendations for many cells, which workers write to Parquet files."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fillrank.cluster.long_tables import LongTable, open_frame, open_long_table
from fillrank.cluster.monitor import Monitor, check_client
from fillrank.errors import InputError, NotSupportedError, OutputError, Setting
from fillrank.io.parquet import write_parquet
from fillrank.table.entries import iter_blocks
from fillrank.table.frames import as_frame, check_fields, to_long
from fillrank.table.labels import as_labels
from fillrank.table.layout import LongFields, long_fields
from fillrank.table.observations import Observations
from fillrank.validation import check_fitted, check_integer

# Lines that are predicted together, and about the most in a file of recommendations.
_BLOCK_LINES = 2**18
_FILES = "part-*.parquet"


class SavedModel(NamedTuple):
    """A model in a file that all workers can read."""

    method: type[Any]
    path: Path


class Ranking(NamedTuple):
    """The number of columns for each row, what they are ranked by, and which cells are left out."""

    n: int
    by: str
    leave_out: str | None


def write_predictions(
    model: Any,
    pairs: Any,
    folder: str | os.PathLike[str],
    client: Any,
    *,
    level: float | None = None,
    row: Any = None,
    column: Any = None,
) -> list[Path]:
    """Predict many cells on a Dask cluster, into Parquet files.

    Parameters
    ----------
    model : fitted method
    pairs : Dask data frame or path
        A line for each cell, with its row label and its column label; a path, or a pattern, is that of
        Parquet files.
    folder : path
        A folder that this machine and all workers can write to at the same path. There will be a file
        for each partition of the pairs that is not empty: ``part-00000.parquet``, ... Each is written
        atomically. If one cannot be written, those that are complete remain.
    client : distributed.Client
    level : float, optional
        Adds ``lower`` and ``upper``, the interval of this level for a new observation.
    row, column : name, optional
        The columns of ``pairs`` with the labels. By default those of the table that was fitted, or the
        two whose names mean row and column.

    Returns
    -------
    list of Path
        The files, in the order of the partitions.
    """
    check_fitted(model)
    check_client(client)
    frame = open_frame(pairs)
    fields = _pair_fields(list(frame.columns), model.observations_, row, column)
    partitions = frame[fields].to_delayed()
    paths = _output_paths(folder, len(partitions))
    with _save_temporarily(model, paths[0].parent, with_data=False) as saved:
        task = _delayed(predict_partition)
        tasks = [
            task(partition, fields, saved, level, path)
            for partition, path in zip(partitions, paths, strict=True)
        ]
        counts = Monitor(client).gather(client.compute(tasks))
    return [path for path, count in zip(paths, counts, strict=True) if count]


def write_recommendations(
    model: Any,
    folder: str | os.PathLike[str],
    client: Any,
    *,
    n: int = 10,
    by: str = "mean",
    leave_out: Any = "seen",
) -> list[Path]:
    """Recommend the n best columns for every row on a Dask cluster, into Parquet files.

    Parameters
    ----------
    model : fitted method
    folder : path
        As in `write_predictions`; each file has a block of consecutive rows.
    client : distributed.Client
    n, by
        As in ``model.recommend``.
    leave_out : "seen", Dask data frame, path or None
        Cells that are not recommended: those observed at fit; those of a long table in partitions, for
        a model whose entries are on a cluster; or none.

    Returns
    -------
    list of Path
        The files, in order.
    """
    check_fitted(model)
    check_client(client)
    n = min(check_integer("n", n, 1), model.observations_.shape[1])
    seen = isinstance(leave_out, str) and leave_out == "seen"
    if seen and len(model.observations_) == 0:
        raise NotSupportedError(
            "this model does not have the entries that it was fitted on. Pass the table whose cells to "
            "leave out, as in leave_out=ratings; or leave_out=None for none."
        )
    bounds = _row_bounds(model.observations_.shape[0], n, len(client.nthreads()))
    paths = _output_paths(folder, bounds.size - 1)
    with _save_temporarily(model, paths[0].parent, with_data=seen) as saved:
        ranking = Ranking(n, by, "seen" if seen else None)
        if seen or leave_out is None:
            lines = [None] * len(paths)
        else:
            lines = _shuffle_by_block(leave_out, saved, bounds)
        task = _delayed(recommend_block)
        tasks = [
            task(saved, ranking, rows, left_out, path)
            for rows, left_out, path in zip(pairwise(bounds.tolist()), lines, paths, strict=True)
        ]
        Monitor(client).gather(client.compute(tasks))
    return paths


def _delayed(function: Any) -> Any:
    import dask

    return dask.delayed(function)


def _pair_fields(names: list[Any], data: Observations, row: Any, column: Any) -> list[Any]:
    if (row is None) != (column is None):
        raise InputError("row and column must be set together: name both columns, or none.")
    if row is not None:
        fields = [row, column]
    elif {data.origin.row_field, data.origin.column_field} <= set(names):
        fields = [data.origin.row_field, data.origin.column_field]
    elif found := long_fields(names) or long_fields([*names, "value"]):
        fields = [found.row, found.column]
    else:
        raise InputError(
            f"the columns of the pairs are {', '.join(map(repr, names))}",
            advice=(
                "Specify which have the labels of rows and columns with ",
                Setting("row", ...),
                " and ",
                Setting("column", ...),
                ".",
            ),
        )
    check_fields(names, LongFields(fields[0], fields[1], fields[1]))  # pairs have no value
    return fields


def _output_paths(folder: str | os.PathLike[str], n_files: int) -> list[Path]:
    """The paths of new files in a folder, which is created; raise OutputError if it has such files."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} is not a folder and cannot be created: {error}.") from error
    if earlier := sorted(folder.glob(_FILES)):
        raise OutputError(
            f"{folder} already has {len(earlier)} files such as {earlier[0].name}. Choose another "
            "folder, or remove them."
        )
    return [folder.resolve() / _FILES.replace("*", f"{number:05}") for number in range(n_files)]


@contextmanager
def _save_temporarily(model: Any, folder: Path, with_data: bool) -> Iterator[SavedModel]:
    """Save the model in the folder of the output; the file is removed at the end."""
    path = folder / f".model-{secrets.token_hex(8)}.fillrank"
    try:
        model.save(path, with_data=with_data)
        yield SavedModel(type(model), path)
    finally:
        path.unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _load(saved: SavedModel) -> Any:
    """Load the model, once on each worker. It uses one thread, because Dask runs tasks in several."""
    return saved.method.load(saved.path).with_settings(n_threads=1, progress=False)


def predict_partition(
    pairs: Any, fields: list[Any], saved: SavedModel, level: float | None, path: Path
) -> int:
    """Write the predictions for a partition of pairs; return their number."""
    frame = as_frame(pairs)
    if len(frame) == 0:
        return 0
    rows, columns = (as_labels(frame.get_column(field).to_numpy()) for field in fields)
    write_parquet(path, _predict_blocks(_load(saved), rows, columns, level))
    return len(rows)


def _predict_blocks(
    model: Any, rows: np.ndarray, columns: np.ndarray, level: float | None
) -> Iterator[Any]:
    for lines in iter_blocks(len(rows), _BLOCK_LINES):
        cells = rows[lines], columns[lines]
        fields = {"value": model.predict(*cells)}
        if level is not None:
            low, high = model.predict_interval(*cells, level, kind="observation")
            fields |= {"lower": low, "upper": high}
        yield to_long(model.observations_, *cells, fields)


def _row_bounds(n_rows: int, n: int, n_workers: int) -> np.ndarray:
    """The bounds of blocks of rows: enough for all workers, and for files of limited length."""
    n_blocks = max(-(-n_rows * n // _BLOCK_LINES), min(n_workers, n_rows))
    return np.linspace(0, n_rows, n_blocks + 1).astype(np.int64)


def _shuffle_by_block(leave_out: Any, saved: SavedModel, bounds: np.ndarray) -> list[Any]:
    """The lines of a long table in each block of rows."""
    frame, fields = leave_out if isinstance(leave_out, LongTable) else open_long_table(leave_out)
    frame = frame.rename(columns=dict(zip(fields, fields._fields, strict=True))).dropna()
    numbered = frame.map_partitions(
        _add_block, saved, bounds, meta=frame._meta.assign(block=np.empty(0, dtype=np.int64))
    )
    divisions = list(range(bounds.size))
    return numbered.set_index("block", divisions=divisions, shuffle_method="tasks").to_delayed()


def _add_block(lines: Any, saved: SavedModel, bounds: np.ndarray) -> Any:
    """Lines with a column for the number of the block that each belongs to."""
    positions = _load(saved).observations_.row_positions(lines["row"].to_numpy())
    return lines.assign(block=np.searchsorted(bounds, positions, side="right") - 1)


def recommend_block(
    saved: SavedModel, ranking: Ranking, rows: tuple[int, int], lines: Any, path: Path
) -> None:
    """Write the recommendations for a block of rows; ``lines`` are cells to leave out, if any."""
    model = _load(saved)
    leave_out = ranking.leave_out if lines is None or len(lines) == 0 else lines
    labels = model.observations_.row_labels[slice(*rows)]
    write_parquet(path, model.recommend(labels, ranking.n, ranking.by, leave_out=leave_out))
