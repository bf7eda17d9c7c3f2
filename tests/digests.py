"""Digests of small fits of every method, to check that a refactoring changes no bit.

    python tests/digests.py record digests.json    before the first change
    python tests/digests.py check digests.json     after each commit

A digest depends on the processor and on the versions of numpy and numba, so the file is not part of
the repository. Only public names are used here: the same script runs before and after a change.
"""

import hashlib
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import fillrank as fr

COMMON = {"random_state": 0, "progress": False}
RUN = {"n_sweeps": 40, "burn_in": 20, "max_rank": 4} | COMMON
LEVELS = {"max_rank": 3, "max_iterations": 20} | COMMON
SOLVER = {"max_rank": 4} | COMMON
METHODS = {
    "GASR": lambda **s: fr.GASR(**RUN, **s),
    "GASR float64": lambda **s: fr.GASR(dtype="float64", **RUN, **s),
    "GASR plain": lambda **s: fr.GASR(effects="mean", centres=False, start="random", **RUN, **s),
    "GASR hasi": lambda **s: fr.GASR(start="hasi", **RUN, **s),
    "GASR auto": lambda **s: fr.GASR(**COMMON, **s),
    "GASR as published": lambda **s: fr.GASR.as_published(**RUN | {"burn_in": 0}, **s),
    "BPMF": lambda **s: fr.BPMF(**RUN, **s),
    "BPMF joint": lambda **s: fr.BPMF(row_draws="joint", noise_precision=2.0, **RUN, **s),
    "SoftImpute": lambda **s: fr.SoftImpute(**SOLVER, **s),
    "SoftImputeALS": lambda **s: fr.SoftImputeALS(**SOLVER, **s),
    "HASI": lambda **s: fr.HASI(**SOLVER, **s),
    "RelaxedSpectral": lambda **s: fr.RelaxedSpectral(**SOLVER, **s),
    "M3F": lambda **s: fr.M3F(**LEVELS, **s),
    "IPM3F": lambda **s: fr.IPM3F(**LEVELS, **s),
    "IPM3F gibbs": lambda **s: fr.IPM3F(inference="gibbs", penalty=1.0, n_sweeps=20, **LEVELS, **s),
}
HAVE_DRAWS = ("GASR", "BPMF")
CAN_RESUME = ("GASR", "GASR as published", "BPMF")
FOLD_IN_COLUMNS = ("GASR", "BPMF", "SoftImpute", "HASI", "RelaxedSpectral")


def table(missing, levels=False):
    """A table of rank 2, of ratings or of numbers."""
    data, _ = fr.synthetic(40, 25, rank=2, noise=0.3, missing=missing, random_state=1)
    if not levels:
        return data
    stars = np.clip(np.rint(data.values + 3), 1, 5)
    return fr.Observations.from_triplets(data.rows, data.columns, stars)


class Digest:
    """A hash of arrays, numbers, text and files."""

    def __init__(self):
        self._hash = hashlib.sha256()

    def add(self, *values):
        for value in values:
            if isinstance(value, bytes):
                self._hash.update(value)
            elif isinstance(value, np.ndarray) and value.dtype != object:
                self._hash.update(f"{value.dtype} {value.shape}".encode())
                self._hash.update(np.ascontiguousarray(value).tobytes())
            else:
                self._hash.update(repr(value).encode())

    def text(self):
        return self._hash.hexdigest()[:16]


def digest_of(model, has_draws, folder, with_data=True):
    """All that can be asked of a model, and its file."""
    digest = Digest()
    data = model.observations_
    rows, columns = (k.ravel() for k in np.indices(data.shape))
    rows, columns = data.row_labels[rows], data.column_labels[columns]
    digest.add(
        model.predict(rows, columns), model.predict_block(data.row_labels, data.column_labels)
    )
    for name, trace in sorted(model.history_.items()):
        digest.add(name, np.asarray(trace))
    digest.add(model.rank_, model.stop_reason_)
    if with_data:
        digest.add(str(model.recommend(n=3)))
    if has_draws:
        for kind in ("signal", "observation"):
            digest.add(*model.predict_interval(rows, columns, kind=kind))
        digest.add(model.predict([data.row_labels[0]], ["none"], unknown="prior"))
        digest.add(model.rank_probabilities_, model.noise_variance_, model.singular_values_)
    if with_data and has_draws:
        for completion in model.sample_completions(2):
            digest.add(np.asarray(completion, dtype=float))
    path = Path(folder, "model.fillrank")
    model.save(path, with_data=with_data)
    digest.add(path.read_bytes())
    again = fr.load(path)
    digest.add(again.predict(rows, columns))
    return digest.text()


def is_one_of(name, families):
    return name.split()[0] in families


def fits(folder):
    """Yield (name, digest) of each fit on one machine."""
    for name, make in METHODS.items():
        for missing in (0.4, 0.0):
            data = table(missing, levels=name.startswith(("M3F", "IPM3F")))
            for n_threads in (1, 2):
                model = make(n_threads=n_threads).fit(data)
                digest = digest_of(
                    model.set_params(n_threads=1), is_one_of(name, HAVE_DRAWS), folder
                )
                yield f"{name}, {missing:.0%} missing, {n_threads} threads", digest
            if missing:
                yield from derived(name, make, model, data, folder)


def derived(name, make, model, data, folder):
    """Models that come of another one: new rows, new columns, and runs that go on."""
    has_draws = is_one_of(name, HAVE_DRAWS)
    cells = np.full((3, data.shape[1]), np.nan)
    cells[:2, ::3] = 3.0
    yield f"{name}, new rows", digest_of(model.fold_in(cells), has_draws, folder)
    digest = Digest()
    digest.add(model.transform(cells), model.predict(cells))
    yield f"{name}, transform", digest.text()
    if is_one_of(name, FOLD_IN_COLUMNS):
        cells = np.full((data.shape[0], 2), np.nan)
        cells[::3, 0] = 3.0
        columns = model.fold_in(cells, axis="columns")
        yield f"{name}, new columns", digest_of(columns, has_draws, folder)
    if name in CAN_RESUME:
        longer = make().fit(data).run_longer(20)
        yield f"{name}, 20 sweeps more", digest_of(longer, has_draws, folder)
        saved = Path(folder, f"run of {name}")
        make(checkpoint=saved).fit(data)
        resumed = make(checkpoint=saved).set_params(n_sweeps=60).fit(data)
        yield f"{name}, resumed", digest_of(resumed.set_params(checkpoint=None), has_draws, folder)


def cluster_fits(folder):
    """Yield (name, digest) of fits on a small cluster."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for missing in (0.4, 0.0):
            model = METHODS["GASR"]().fit(table(missing), client=client)
            yield f"GASR, {missing:.0%} missing, cluster", digest_of(model, True, folder)


def all_digests():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        yield from fits(folder)
        yield from cluster_fits(folder)


def main(mode, path):
    path = Path(path)
    if mode == "record":
        path.write_text(json.dumps(dict(all_digests()), indent=1))
        return 0
    known = json.loads(path.read_text())
    found = dict(all_digests())
    changed = [name for name in known | found if known.get(name) != found.get(name)]
    for name in changed:
        print(f"changed: {name}: {known.get(name)} -> {found.get(name)}")
    print(f"{len(found) - len(changed)} of {len(found)} digests are the same")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
