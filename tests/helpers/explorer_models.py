"""Small models for the explorer, and a server that runs while a test does."""

import threading
from contextlib import contextmanager
from functools import cache

import numpy as np

import fillrank as fr
from fillrank.explore.server import Explorer
from fillrank.explore.views import ModelView

FOODS = (
    "apple beans bread cheese coffee fish honey lentils milk olives onion rice soup tea tofu walnut"
)
HOSTILE = [
    "<img src=x onerror=\"document.title='run'\">",
    "</script><script>document.title='run'</script>",
    "[bold red]x[/] {{7*7}} ${7*7} &amp;",
    "\u202egnp.exe\u202c שלום",
    "n" * 300,
    "two\nlines\tand \"quotes\" 'too'",
    " ",
    "😀 Zoë",
]


def likings(n_rows, n_columns, missing=0.5, seed=3):
    """Made-up likings of rank 2 around 3: (where they are known, all of them)."""
    rng = np.random.default_rng(seed)
    signal = 3 + 0.7 * rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_columns))
    return rng.random((n_rows, n_columns)) >= missing, signal + 0.3 * rng.normal(size=signal.shape)


def observed(people, foods, seed=3, missing=0.5):
    """A table of likings, under names."""
    known, values = likings(len(people), len(foods), missing, seed)
    i, j = np.nonzero(known)
    people, foods = np.array(people, dtype=object), np.array(foods, dtype=object)
    return fr.Observations.from_triplets(people[i], foods[j], values[i, j])


def people(n):
    """Names of so many people."""
    return [f"person {number}" for number in range(1, n + 1)]


@cache
def survey():
    """80 people and 16 foods."""
    return fr.GASR(n_sweeps=60, random_state=0, progress=False, n_threads=1).fit(
        observed(people(80), FOODS.split())
    )


@cache
def hostile():
    """Names of rows and columns that would be markup, or a mess, if they were not shown as text."""
    rows = HOSTILE + people(60)
    columns = HOSTILE + FOODS.split()
    return fr.GASR(n_sweeps=60, random_state=0, progress=False, n_threads=1).fit(
        observed(rows, columns)
    )


@cache
def large():
    """12,000 rows and 300 columns."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(12_000, size=60_000), rng.integers(300, size=60_000)
    i[:12_000], j[:12_000] = np.arange(12_000), np.arange(12_000) % 300
    names = np.array([f"user {number:05d}" for number in range(12_000)], dtype=object)
    films = np.array([f"film {number:03d}" for number in range(300)], dtype=object)
    data = fr.Observations.from_triplets(
        names[i], films[j], rng.integers(1, 6, size=60_000), duplicates="first"
    )
    return fr.GASR(n_sweeps=20, max_rank=5, random_state=0, progress=False).fit(data)


@contextmanager
def served(model, title="survey", port=0, **titles):
    """A server of the model, closed at the end."""
    with Explorer(ModelView(model, title, **titles), port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(60)
            assert not thread.is_alive(), "the server has not ended 60 seconds after its shutdown"
