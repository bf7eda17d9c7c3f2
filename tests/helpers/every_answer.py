"""Fit methods, ask them everything, and say what numba compiled meanwhile: for a process of its own.

A run of one of numba's passes is a compilation, whoever asked for it and wherever its result goes.
"""

import inspect
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from numba.core import event

import fillrank as fr
from fillrank.kernels.gaussian_rows import gaussian_rows
from fillrank.kernels.published import ball_rows
from fillrank.runtime.kernel_cache import must_compile
from helpers.fitted_models import METHODS, cells_of, new_rows

_VARIANTS = {
    "GASR": [{"start": start} for start in ("spectral", "soft_impute", "hasi", "random")],
    "BPMF": [{"row_draws": "entries"}, {"row_draws": "joint", "start": "random"}],
    "RelaxedSpectral": [{"form": form} for form in ("marginal", "P2", "P3")],
}


class _Passes(event.Listener):
    """The names of the functions that were compiled."""

    def __init__(self):
        self.names = set()

    def on_start(self, event):
        self.names.add(event.data["qualname"])

    def on_end(self, event):
        pass


class _Arguments(event.Listener):
    """The files of the named tuples that compiled functions take."""

    def __init__(self):
        self.files = set()

    def on_start(self, event):
        self._look_at(event.data["args"])

    def _look_at(self, types):
        for kind in types:
            if hasattr(kind, "instance_class"):
                self.files.add(inspect.getfile(kind.instance_class))
            self._look_at(getattr(kind, "types", ()))

    def on_end(self, event):
        pass


def _ask(model, name):
    """Ask a fitted model everything; what its method has no answer to, it refuses."""
    cells = ([0, 1], [1, 2])
    questions = (
        lambda: model.predict(*cells),
        lambda: model.predict_block(*cells),
        lambda: model.predict_interval(*cells),
        lambda: model.predict_interval(*cells, kind="observation"),
        lambda: list(model.predict_missing()),
        lambda: list(model.predict_missing(level=0.9, n_draws=2)),
        lambda: model.sample_completions(2),
        lambda: model.diagnostics(),
        *(lambda by=by: model.recommend(n=3, by=by) for by in ("mean", "cautious", "curious")),
        lambda: model.recommend(leave_out=None),
        lambda: model.fold_in(new_rows(name)).predict(0, 0),
        lambda: model.fold_in(cells_of(name, n_columns=2), axis="columns").predict(0, 0),
        lambda: model.transform(cells_of(name)),
        lambda: model.run_longer(2),
    )
    for question in questions:
        with suppress(fr.FillrankError, AttributeError):
            question()


def everything(name):
    """Fit a method in its variants and ask it everything; the same of its file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        for changes in _VARIANTS.get(name, [{}]):
            model = METHODS[name]().set_params(**changes).fit(cells_of(name))
            model.save(path, with_data=True)
            for asked in (model, fr.load(path)):
                _ask(asked, name)


def fit_and_predict(name):
    """Fit a method and predict a cell."""
    METHODS[name]().fit(cells_of(name)).predict(0, 0)


def main(work, *names):
    """Print in three lines whether kernels are there, what is compiled nevertheless, and of what."""
    warnings.simplefilter("ignore")
    passes, arguments = _Passes(), _Arguments()
    event.register("numba:run_pass", passes)
    event.register("numba:compile", arguments)
    print("to compile" if all(map(must_compile, (gaussian_rows, ball_rows))) else "compiled")
    for name in names:
        {"everything": everything, "fit_and_predict": fit_and_predict}[work](name)
    print(*sorted(passes.names))
    print(*sorted(arguments.files))


if __name__ == "__main__":
    main(*sys.argv[1:])
