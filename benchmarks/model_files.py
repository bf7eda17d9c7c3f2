"""What keeping a model in a file costs: its size, its time, and the error that compression makes.

python benchmarks/model_files.py --data FOLDER      FOLDER holds MovieLens 1M as published
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import fillrank as fr
from fillrank.posterior.metrics import coverage, rmse

N_PAIRS = 2_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    train, test = fr.datasets.load("ml-1m", parser.parse_args().data).split(0.2, random_state=0)
    model = fr.GASR(random_state=0).fit(train)
    _compression(model, test)
    with tempfile.TemporaryDirectory() as folder:
        _file(model, Path(folder) / "model.fillrank")


def _compression(model: fr.GASR, test: fr.Observations) -> None:
    """Predictions and intervals from all recorded draws, and from what the model keeps."""
    units = model.posterior_.units
    recorded = model.recorded_draws()
    i, j = test.row_index, test.column_index
    every = np.array([draw.at(i, j).astype(np.float32) for draw in recorded])
    kept = np.array([draw.at(i, j).astype(np.float32) for draw in model.posterior_.draws])
    sd = np.sqrt(every.var(axis=0).mean())
    exact = units.restore(every.mean(axis=0), j)
    predicted = model.predict(test.rows, test.columns)
    monte_carlo = np.sqrt(every.var(axis=0).mean() / len(recorded))
    print(
        f"{len(recorded)} draws recorded, {len(kept)} kept; posterior sd {sd:.4f} (standard units)"
    )
    print(f"Monte Carlo error of the mean, if draws were independent: {monte_carlo:.4f}")
    error = rmse(exact, predicted) / units.shared_scale
    print(f"error of the mean in {model.posterior_.mean.left.shape[1]} factors: {error:.4f}")
    print(f"test RMSE: {rmse(test.values, exact):.5f} by all draws, one by one")
    print(f"test RMSE: {rmse(test.values, predicted):.5f} by the kept mean")
    low, high = model.predict_interval(test.rows, test.columns, 0.9, "observation")
    print(f"90% intervals of the kept draws hold {100 * coverage(test.values, low, high):.2f}%")
    spreads = kept.std(axis=0).mean() / every.std(axis=0).mean()
    print(f"spread of the kept draws over that of all: {spreads:.4f}")


def _file(model: fr.GASR, path: Path) -> None:
    saving = _seconds(lambda: model.save(path))
    size = path.stat().st_size / 1e6
    loading = _seconds(lambda: fr.load(path))
    loaded = fr.load(path)
    recorded = sum(draw.nbytes for draw in model.recorded_draws()) / 1e6
    print(f"file {size:.1f} MB (all recorded draws: {recorded:.0f} MB)")
    print(f"saved in {saving:.2f} s, loaded in {loading:.2f} s")
    rng = np.random.default_rng(0)
    rows = rng.choice(model.observations_.row_labels, N_PAIRS)
    columns = rng.choice(model.observations_.column_labels, N_PAIRS)
    times = {"memory": [], "file": []}
    for _ in range(5):  # in turns
        times["memory"].append(_seconds(lambda: model.predict(rows, columns)))
        times["file"].append(_seconds(lambda: loaded.predict(rows, columns)))
    ratio = np.median(times["file"]) / np.median(times["memory"])
    rate = N_PAIRS / np.median(times["file"]) / 1e6
    print(f"predict from the file over from memory: {ratio:.2f}; {rate:.1f} million pairs a second")
    same = np.array_equal(model.predict(rows, columns), loaded.predict(rows, columns))
    print(f"the same bits: {same}")


def _seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
