"""Whole days without any reading, filled from their dates and their features.

    python benchmarks/days.py --data FOLDER/tables [--splits 5] [--validation]

Passengers of 21 stations by day, with weather and games as features of the days. A tenth of the days is
hidden. Errors are relative to those of the column means. With --validation, the test days are left out
and another tenth is hidden.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import fillrank as fr

_STATIONS = slice(0, 21)


def rmse(table, predicted):
    """The root mean squared error in the standard deviations of the columns, and in the data's unit."""
    difference = predicted - table.to_numpy()
    return np.array(
        [
            np.sqrt(np.mean((difference / table.std().to_numpy()) ** 2)),
            np.sqrt(np.mean(difference**2)),
        ]
    )


def means_by(fitted, hidden, *keys):
    """Predictions by the means of the days with the same keys; the column means where there are none."""
    grouped = fitted.groupby([key(fitted.index) for key in keys]).mean()
    places = pd.MultiIndex.from_arrays([key(hidden.index) for key in keys])
    found = grouped.reindex(places if len(keys) > 1 else places.get_level_values(0))
    return found.fillna(fitted.mean()).to_numpy()


def run(fitted, hidden, features, seed):
    """Errors relative to the column means, and the coverage of 90% intervals, by method."""
    usual = rmse(hidden, np.broadcast_to(fitted.mean().to_numpy(), hidden.shape))
    weekday, year = (lambda days: days.day_of_week), (lambda days: days.year)
    found = {
        "means by weekday": (*rmse(hidden, means_by(fitted, hidden, weekday)) / usual, np.nan, 0),
        "by weekday and year": (
            *rmse(hidden, means_by(fitted, hidden, weekday, year)) / usual,
            np.nan,
            0,
        ),
    }
    table = pd.concat([fitted, hidden * np.nan]).sort_index()
    rows, columns = np.repeat(hidden.index, 21), np.tile(hidden.columns, len(hidden))
    for name, given in (("GASR, dates", None), ("GASR, dates, weather and games", features)):
        model = fr.GASR(random_state=seed, progress=False).fit(table, row_features=given)
        predicted = model.predict(rows, columns).reshape(hidden.shape)
        low, high = model.predict_interval(rows, columns)
        values = hidden.to_numpy().ravel()
        covered = np.mean((low <= values) & (values <= high))
        found[name] = (*rmse(hidden, predicted) / usual, covered, model.n_sweeps_)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--validation", action="store_true")
    arguments = parser.parse_args()
    table = pd.read_csv(arguments.data / "chicago-trains.csv").iloc[:, 1:]
    table.index = pd.to_datetime(table.pop("date"))
    passengers, features = table.iloc[:, _STATIONS], table.iloc[:, _STATIONS.stop :]
    results = []
    for split in range(arguments.splits):
        order = np.random.default_rng(split).permutation(len(passengers))
        tenth = len(order) // 10
        hidden, rest = order[:tenth], order[tenth:]
        if arguments.validation:
            hidden, rest = rest[:tenth], rest[tenth:]
        used = np.sort(np.concatenate([hidden, rest]))
        results.append(
            run(passengers.iloc[rest], passengers.iloc[hidden], features.iloc[used], split)
        )
        print(split, results[-1], flush=True)
    print(
        "| method | error in sd | error in passengers | coverage | sweeps |\n|---|---|---|---|---|"
    )
    for name in results[0]:
        in_sd, in_units, covered, sweeps = np.mean([result[name] for result in results], axis=0)
        print(f"| {name} | {in_sd:.3f} | {in_units:.3f} | {covered:.3f} | {sweeps:.0f} |")


if __name__ == "__main__":
    main()
