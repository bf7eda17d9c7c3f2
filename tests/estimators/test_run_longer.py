"""Going on with a run: `run_longer` gives the bits that one longer run would have given."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import fillrank as fr
from fillrank.errors import ConvergenceWarning, InputError
from fillrank.estimators import sampled
from fillrank.run import loop, recorder
from fillrank.samplers import bpmf, gasr
from helpers.fitted_models import METHODS, fit, fitted, new_rows
from helpers.quick_fits import table
from reference.planted import plant
from reference.planted_methods import plant_in_method

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
X = table(20, 12) * np.geomspace(1, 30, 12)  # each column has its own unit: noise is not tried
COMMON = {
    "max_rank": 3, "burn_in": 12, "n_chains": 1, "progress": False, "n_threads": 1, "random_state": 0,
}  # fmt: skip
METHODS_THAT_SAMPLE = {
    "GASR": fr.GASR,
    "GASR as published": fr.GASR.as_published,
    "BPMF": fr.BPMF,
}
EACH = pytest.mark.parametrize("method", METHODS_THAT_SAMPLE.values(), ids=METHODS_THAT_SAMPLE)


@pytest.fixture(autouse=True)
def _unjudged(monkeypatch):
    """No run is judged at its end: that takes longer than these runs."""
    monkeypatch.setattr(sampled, "warn_unconverged", lambda *_: False)


def of(method, n_sweeps, **changes):
    return method(**(COMMON | {"n_sweeps": n_sweeps} | changes))


def assert_same(one, other):
    """All that is fitted is equal to the bit, but for why the run ended."""
    assert one.n_sweeps_ == other.n_sweeps_
    assert one.rank_probabilities_ == other.rank_probabilities_
    assert (one.rank_, one.noise_variance_) == (other.rank_, other.noise_variance_)
    np.testing.assert_array_equal(one.singular_values_, other.singular_values_)
    for draw, twin in zip(
        (*one.posterior_.draws, one.posterior_.mean),
        (*other.posterior_.draws, other.posterior_.mean),
        strict=True,
    ):
        parts = (
            (*each[:2], *each.noise, each.row_weights, each.column_weights) for each in (draw, twin)
        )
        for part, same in zip(*parts, strict=True):
            np.testing.assert_array_equal(part, same)
    for part, same in zip(one.traces_[1:], other.traces_[1:], strict=True):
        np.testing.assert_array_equal(part, same)
    for traced, twin in (
        (one.history_, other.history_),
        (one.traces_.history, other.traces_.history),
    ):
        assert list(traced) == list(twin)
        for name, trace in traced.items():
            assert trace.dtype == twin[name].dtype
            np.testing.assert_array_equal(trace, twin[name])


@EACH
@pytest.mark.parametrize("n_chains", [1, 2])
def test_run_longer_equals_a_longer_run(method, n_chains):
    model = of(method, 20, n_chains=n_chains).fit(X)
    assert model.run_longer(13) is model
    assert model.stop_reason_ == "all 33 sweeps done"
    assert_same(model, of(method, 33, n_chains=n_chains).fit(X))


@EACH
def test_run_longer_several_times_with_other_threads(method):
    model = of(method, 14).fit(X)
    for more, n_threads in ((1, 2), (2, 1), (8, 3), (8, None)):
        model.set_params(n_threads=n_threads).run_longer(more)
    assert_same(model, of(method, 33).fit(X))


@EACH
@pytest.mark.parametrize("n_sweeps", [13, 17, 22, 27])
def test_thinning_continues(method, n_sweeps, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_DRAWS", 8)
    model = of(method, n_sweeps).fit(X).run_longer(40 - n_sweeps)
    whole = of(method, 40).fit(X)
    assert whole.traces_.thinning == 4
    assert_same(model, whole)


def test_run_longer_after_an_automatic_stop():
    model = of(fr.GASR, "auto", burn_in=20).fit(X)
    n_sweeps = model.n_sweeps_
    model.run_longer(7)
    assert_same(model, of(fr.GASR, n_sweeps + 7, burn_in=20).fit(X))


def interrupt_in(monkeypatch, module, k):
    """Make Ctrl-C come in the sweep after the k-th; then no more."""
    sweep, count = module.sweep, 0

    def interrupted(*arguments):
        nonlocal count
        count += 1
        if count == k + 1:
            raise KeyboardInterrupt
        return sweep(*arguments)

    monkeypatch.setattr(module, "sweep", interrupted)


@pytest.mark.parametrize(("method", "module"), [(fr.GASR, gasr), (fr.BPMF, bpmf)])
@pytest.mark.parametrize("k", [1, 5, 9, 12, 13, 15])
def test_run_longer_after_ctrl_c(method, module, k, monkeypatch):
    """In the burn-in the last state is kept in need: of that nothing must be left."""
    whole = of(method, 30).fit(X)
    interrupt_in(monkeypatch, module, k)
    model = of(method, 30).fit(X)
    assert model.interrupted_
    assert model.n_sweeps_ == k
    assert_same(model.run_longer(30 - k), whole)
    assert not model.interrupted_


def test_run_longer_within_the_burn_in(monkeypatch):
    """The model is that of the last sweep taken, not of the one that Ctrl-C had left."""
    interrupt_in(monkeypatch, gasr, 4)
    model = of(fr.GASR, 30).fit(X)
    (first,) = model.posterior_.draws
    (second,) = model.run_longer(3).posterior_.draws
    assert not np.array_equal(first.left, second.left)
    assert model.n_sweeps_ == 7
    np.testing.assert_array_equal(
        second.left, of(fr.GASR, 7, burn_in=6).fit(X).posterior_.draws[-1].left
    )
    assert_same(model.run_longer(23), of(fr.GASR, 30).fit(X))


@pytest.mark.parametrize("where", ["take", "history"])
def test_ctrl_c_while_a_sweep_is_recorded(where, monkeypatch):
    """A sweep that was noted, or half noted, when Ctrl-C came is taken again, and noted once."""
    whole = of(fr.GASR, 30).fit(X)
    right = recorder.Recorder.take

    def interrupted(self, step):
        if step.number == 17 and not model.__dict__.get("has_been_interrupted"):
            model.has_been_interrupted = True
            right(self, step)
            if where == "history":
                self._history.pop()
            raise KeyboardInterrupt
        right(self, step)

    monkeypatch.setattr(recorder.Recorder, "take", interrupted)
    model = of(fr.GASR, 30)
    assert model.fit(X).n_sweeps_ == 16
    assert_same(model.run_longer(14), whole)


def test_planted_bugs_in_counting_sweeps_are_detected(monkeypatch):
    plant(monkeypatch, loop, "execute", "n_adapt, run.n_sweeps)", "n_adapt, 0)", into=[sampled])
    with pytest.raises(AssertionError):
        test_run_longer_equals_a_longer_run(fr.GASR, 1)


@pytest.mark.parametrize(
    ("method", "old", "new", "check"),
    [
        (
            "take",
            "if not self._probes:",
            "if False:",
            partial(test_run_longer_after_ctrl_c, fr.GASR, gasr, 5),
        ),
        (
            "discard_after",
            "self._history[:n_sweeps]",
            "self._history",
            partial(test_ctrl_c_while_a_sweep_is_recorded, "take"),
        ),
        (
            "discard_after",
            "self._probes[: max(n_sweeps - self.burn_in, 0)]",
            "self._probes",
            partial(test_ctrl_c_while_a_sweep_is_recorded, "history"),
        ),
    ],
)
def test_planted_bugs_of_the_recorder_are_detected(method, old, new, check, monkeypatch):
    plant_in_method(monkeypatch, recorder.Recorder, method, (old, new))
    with pytest.raises(AssertionError):
        check(monkeypatch=monkeypatch)


@pytest.mark.parametrize("name", ["GASR", "GASR as published", "BPMF"])
def test_a_pickled_model_runs_longer_with_the_same_result(name):
    model = fit(name, X)
    again = pickle.loads(pickle.dumps(model))
    assert_same(again.run_longer(5), model.run_longer(5))


def test_run_longer_does_not_change_folded_in_models():
    """The copy from which a model of new rows is made shares nothing that going on changes."""
    model = of(fr.GASR, 20).fit(X)
    new = model.fold_in(new_rows("GASR"))
    before = new.predict(0, [1, 2])
    old_draws = model.posterior_.draws
    model.run_longer(5)
    np.testing.assert_array_equal(new.predict(0, [1, 2]), before)
    assert len(old_draws) == 8


@EACH
@pytest.mark.parametrize(
    "changes",
    [
        {"max_rank": 2},
        {"burn_in": 3},
        {"dtype": "float64"},
        {"value_range": (0, 1)},
        {"random_state": 1},
    ],
)
def test_settings_that_were_changed_since_the_fit_are_refused(method, changes):
    model = of(method, 14).fit(X)
    (name,) = changes
    before = model.get_params()[name]
    with pytest.raises(InputError, match=f"^{name} has changed since the fit"):
        model.set_params(**changes).run_longer(3)
    model.set_params(**{name: before, "progress": False, "n_sweeps": 99, "checkpoint": None})
    assert_same(model.run_longer(3), of(method, 17).fit(X))


def test_a_pickled_model_with_a_generator_can_run_longer():
    model = of(fr.GASR, 14, random_state=np.random.default_rng(0)).fit(X)
    assert pickle.loads(pickle.dumps(model)).run_longer(2).n_sweeps_ == 16


@pytest.mark.parametrize("n_sweeps", [0, -1, 1.5, "x", None, True])
def test_run_longer_needs_an_integer(n_sweeps):
    with pytest.raises(InputError, match="n_sweeps must be a whole number at least 1"):
        fitted("GASR").run_longer(n_sweeps)


def test_run_longer_needs_a_fitted_model():
    with pytest.raises(NotFittedError):
        METHODS["GASR"]().run_longer(1)


def test_run_longer_warns_if_still_not_converged(monkeypatch):
    monkeypatch.undo()
    with pytest.warns(ConvergenceWarning, match="The run has not converged"):
        fit("BPMF", X).run_longer(1)
