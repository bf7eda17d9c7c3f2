"""Answers for very many cells: each worker writes its own files, whole or not at all."""

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

# Lines of an answer that are made at once, and that a file of recommendations has about.
_AT_ONCE = 2**18
_FILES = "part-*.parquet"


class Kept(NamedTuple):
    """A model in a file that all workers see."""

    method: Any
    path: Path


class Wanted(NamedTuple):
    """How many columns are wanted for each row, the best by what, and what is left out."""

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
    """Predict cells by the million on a Dask cluster, into Parquet files.

    Parameters
    ----------
    model : fitted method
    pairs : Dask data frame, or path
        A line for each cell, with the names of its row and its column; a path is that of Parquet files,
        also as a pattern.
    folder : path
        Where all workers, and this machine, can write under the same name. It gets a file for each
        partition of the pairs that has any: ``part-00000.parquet``, ... Files are whole or not there;
        if one cannot be made, those that are done stay.
    client : distributed.Client
    level : float, optional
        With it there are also ``lower`` and ``upper``: the interval of this level for a new observation.
    row, column : name of a field
        Where the names are in ``pairs``. By default where they were in the table that was fitted, or in
        the two fields that are named like row and column.

    Returns
    -------
    list of Path
        The files, in the order of the partitions.
    """
    check_fitted(model)
    check_client(client)
    frame = open_frame(pairs)
    fields = _pair_fields(list(frame.columns), model.observations_, row, column)
    parts = frame[fields].to_delayed()
    places = _places(folder, len(parts))
    with _kept(model, places[0].parent, with_data=False) as kept:
        work = _delayed(predictions_of_part)
        tasks = [
            work(part, fields, kept, level, place)
            for part, place in zip(parts, places, strict=True)
        ]
        counts = Monitor(client).gather(client.compute(tasks))
    return [place for place, count in zip(places, counts, strict=True) if count]


def write_recommendations(
    model: Any,
    folder: str | os.PathLike[str],
    client: Any,
    *,
    n: int = 10,
    by: str = "mean",
    leave_out: Any = "seen",
) -> list[Path]:
    """The n best columns for every row, worked out on a Dask cluster, into Parquet files.

    Parameters
    ----------
    model : fitted method
    folder : path
        As in `write_predictions`; a file has the rows of a block, in order.
    client : distributed.Client
    n, by
        As in ``model.recommend``.
    leave_out : "seen", Dask data frame, path, or None
        Cells that are no answer: those observed at fit; those of a long table in partitions, which is
        the way for a model whose entries lie on a cluster; or none.

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
            "this model does not have the entries that it was fitted on. Name the table whose cells to "
            "leave out, as in leave_out=ratings; or leave_out=None for none."
        )
    bounds = _row_bounds(model.observations_.shape[0], n, len(client.nthreads()))
    places = _places(folder, bounds.size - 1)
    with _kept(model, places[0].parent, with_data=seen) as kept:
        wanted = Wanted(n, by, "seen" if seen else None)
        lines = (
            [None] * len(places)
            if seen or leave_out is None
            else _by_block(leave_out, kept, bounds)
        )
        work = _delayed(recommendations_of_block)
        tasks = [
            work(kept, wanted, rows, left_out, place)
            for rows, left_out, place in zip(pairwise(bounds.tolist()), lines, places, strict=True)
        ]
        Monitor(client).gather(client.compute(tasks))
    return places


def _delayed(function: Any) -> Any:
    import dask

    return dask.delayed(function)


def _pair_fields(names: list[Any], data: Observations, row: Any, column: Any) -> list[Any]:
    if (row is None) != (column is None):
        raise InputError("row and column go together: name both fields, or none.")
    if row is not None:
        fields = [row, column]
    elif {data.origin.row_field, data.origin.column_field} <= set(names):
        fields = [data.origin.row_field, data.origin.column_field]
    elif found := long_fields(names) or long_fields([*names, "value"]):
        fields = [found.row, found.column]
    else:
        raise InputError(
            f"the fields of the pairs are {', '.join(map(repr, names))}",
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


def _places(folder: str | os.PathLike[str], n_files: int) -> list[Path]:
    """Files for answers, in a folder that has none yet."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} is no folder and cannot be made one: {error}.") from error
    if earlier := sorted(folder.glob(_FILES)):
        raise OutputError(
            f"{folder} already has {len(earlier)} files such as {earlier[0].name}. Name another folder, "
            "or remove them."
        )
    return [folder.resolve() / _FILES.replace("*", f"{number:05}") for number in range(n_files)]


@contextmanager
def _kept(model: Any, folder: Path, with_data: bool) -> Iterator[Kept]:
    """The model in a file beside the answers, for as long as they are worked out."""
    path = folder / f".model-{secrets.token_hex(8)}.fillrank"
    try:
        model.save(path, with_data=with_data)
        yield Kept(type(model), path)
    finally:
        path.unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _loaded(kept: Kept) -> Any:
    """The model, once on each worker; Dask's own threads share its processors."""
    return kept.method.load(kept.path).with_settings(n_threads=1, progress=False)


def predictions_of_part(
    pairs: Any, fields: list[Any], kept: Kept, level: float | None, place: Path
) -> int:
    """Write the predictions of a partition of pairs; their number."""
    frame = as_frame(pairs)
    if len(frame) == 0:
        return 0
    rows, columns = (as_labels(frame.get_column(field).to_numpy()) for field in fields)
    write_parquet(place, _predicted(_loaded(kept), rows, columns, level))
    return len(rows)


def _predicted(
    model: Any, rows: np.ndarray, columns: np.ndarray, level: float | None
) -> Iterator[Any]:
    for lines in iter_blocks(len(rows), _AT_ONCE):
        cells = rows[lines], columns[lines]
        fields = {"value": model.predict(*cells)}
        if level is not None:
            low, high = model.predict_interval(*cells, level, kind="observation")
            fields |= {"lower": low, "upper": high}
        yield to_long(model.observations_, *cells, fields)


def _row_bounds(n_rows: int, n: int, n_workers: int) -> np.ndarray:
    """Blocks of rows: at least one for each worker, and none with an answer that is very long."""
    n_blocks = max(-(-n_rows * n // _AT_ONCE), min(n_workers, n_rows))
    return np.linspace(0, n_rows, n_blocks + 1).astype(np.int64)


def _by_block(leave_out: Any, kept: Kept, bounds: np.ndarray) -> list[Any]:
    """The lines of a long table that belong to each block of rows."""
    frame, fields = leave_out if isinstance(leave_out, LongTable) else open_long_table(leave_out)
    frame = frame.rename(columns=dict(zip(fields, fields._fields, strict=True))).dropna()
    aimed = frame.map_partitions(
        _aim, kept, bounds, meta=frame._meta.assign(part=np.empty(0, dtype=np.int64))
    )
    divisions = list(range(bounds.size))
    return aimed.set_index("part", divisions=divisions, shuffle_method="tasks").to_delayed()


def _aim(lines: Any, kept: Kept, bounds: np.ndarray) -> Any:
    positions = _loaded(kept).observations_.row_positions(lines["row"].to_numpy())
    return lines.assign(part=np.searchsorted(bounds, positions, side="right") - 1)


def recommendations_of_block(
    kept: Kept, wanted: Wanted, rows: tuple[int, int], lines: Any, place: Path
) -> None:
    """Write the recommendations for a block of rows; ``lines`` are cells to leave out, if any."""
    model = _loaded(kept)
    leave_out = wanted.leave_out if lines is None or len(lines) == 0 else lines
    names = model.observations_.row_labels[slice(*rows)]
    write_parquet(place, model.recommend(names, wanted.n, wanted.by, leave_out=leave_out))
