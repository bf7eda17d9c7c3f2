"""Validation of what was read from a file: one wrong number or shape at a time."""

from dataclasses import replace

import numpy as np
import pytest

from fillrank.errors import ReadError
from fillrank.features.blocks import Block, Blocks, Field, PatternCode, TableCode
from fillrank.kernels.ordinal import Scorer
from fillrank.posterior import validation
from fillrank.posterior.levels import FitRowsByMargin, LevelPosterior
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.validation import (
    check_history,
    check_ordinal,
    check_posterior,
    check_summary,
    check_traces,
)
from fillrank.run.recorder import Traces
from fillrank.samplers.model import Draw, Noise
from fillrank.solvers.fit import PathPoint
from fillrank.table.units import Units
from reference.planted import plant

SHAPE = 4, 3
NAN, INF = np.nan, np.inf


PATTERN = Block(
    "missingness",
    np.ones((4, 2), np.float32),
    PatternCode(np.ones(3), np.ones((3, 2), np.float32)),
    (),
)
AGE = Field("age", "number", 40.0, 10.0, (), True)
COLOUR = Field("colour", "category", 0.0, 1.0, ("green", "red"), False)
TABLE = Block(
    "features",
    np.ones((4, 1), np.float32),
    TableCode((AGE, COLOUR), np.ones(4), np.ones((4, 1), np.float32)),
    ("age", "age is missing", "colour = green", "colour = red"),
)


def draw(m=4, n=3, k=2, dtype=np.float32, noise_variance=0.1, **noise):
    noise = Noise.equal(noise_variance, SHAPE)._replace(**noise)
    return Draw(np.ones((m, k), dtype), np.ones((n, k), dtype), noise)


def units_of(location, scale, value_range):
    return Units.equal(location, scale, SHAPE[1], value_range)


def posterior(draws=None, units=None, mean=None):
    return LowRankPosterior(
        [draw(), draw()] if draws is None else draws,
        units or units_of(3.0, 1.0, (1.0, 5.0)),
        mean or draw(k=4),
    )


def with_features(rows=(PATTERN, TABLE), columns=(), weights=None, **changes):
    """The posterior with features of rows, 3 in all, or others."""
    given = np.ones((3, 2), np.float32) if weights is None else weights
    draws = [draw()._replace(row_weights=given, **changes)] * 2
    return replace(posterior(draws), blocks=Blocks(rows, columns))


def in_code(block, **changes):
    """The posterior with features, and other things in the code of one block."""
    return with_features(
        tuple(
            each._replace(code=each.code._replace(**changes)) if each is block else each
            for each in (PATTERN, TABLE)
        )
    )


def scorer(m=4, n=3, k=2, n_thresholds=4, dtype=np.float64):
    return Scorer(np.ones((m, k), dtype), np.ones((n, k), dtype), np.ones((m, n_thresholds), dtype))


def ordinal(scorers=None, levels=None):
    return LevelPosterior(
        [scorer(), scorer(k=0)] if scorers is None else scorers,
        np.arange(1.0, 6.0) if levels is None else levels,
        FitRowsByMargin(1.0),
    )


def traces(**changes):
    """Two chains of ten sweeps, four of them burn-in, every second draw stored."""
    valid = Traces(
        {"residual_variance": np.ones((2, 10)), "a": np.ones((2, 10))},
        np.ones((2, 3, 2)),
        np.ones((2, 6, 5)),
        np.array([0, 3, 1, 2, 0]),
        np.array([2, 0, 1, 0, 2]),
        burn_in=4,
        thinning=2,
        n_entries=12,
    )
    return valid._replace(**changes)


def with_value(array, value):
    array = array.copy()
    array.flat[-1] = value
    return array


def test_valid_values_pass():
    check_posterior(posterior(), SHAPE)
    check_posterior(posterior([draw(dtype=np.float64)], units_of(0.0, 1.0, None), draw(k=1)), SHAPE)
    check_posterior(posterior([draw(noise_variance=0.0)]), SHAPE)
    check_posterior(with_features(), SHAPE)
    check_posterior(with_features((TABLE,), weights=np.ones((1, 2), np.float32)), SHAPE)
    check_ordinal(ordinal(), SHAPE)
    check_traces(traces(), SHAPE)


POSTERIORS = {
    "no draw": posterior([]),
    "a row less": posterior([draw(m=3)] * 2),
    "a row more": posterior([draw(m=5)] * 2),
    "a column less": posterior([draw(n=2)] * 2),
    "the mean has a column less": posterior(mean=draw(n=2)),
    "the mean has a row less": posterior(mean=draw(m=3)),
    "widths differ between draws": posterior([draw(), draw(k=3)]),
    "widths differ within a draw": posterior([draw()._replace(right=np.ones((3, 1), np.float32))]),
    "types differ between draws": posterior([draw(), draw(dtype=np.float64)]),
    "types differ within a draw": posterior([draw()._replace(right=np.ones((3, 2)))]),
    "transposed": posterior([draw()._replace(left=np.ones((2, 4), np.float32))]),
    "flat": posterior([draw()._replace(left=np.ones(4, np.float32))]),
    "integers": posterior([draw(dtype=np.int64)]),
    "half precision": posterior([draw(dtype=np.float16)]),
    "NaN": posterior([draw()._replace(left=with_value(draw().left, NAN))]),
    "infinite": posterior([draw(), draw()._replace(right=with_value(draw().right, -INF))]),
    "NaN in the mean": posterior(mean=draw()._replace(left=with_value(draw().left, NAN))),
    "negative noise": posterior([draw(), draw(noise_variance=-1e-9)]),
    "NaN noise": posterior([draw(), draw(noise_variance=NAN)]),
    "infinite noise": posterior(mean=draw(noise_variance=INF)),
    "precisions of too few rows": posterior([draw(rows=np.ones(3))]),
    "precisions of too many columns": posterior([draw(columns=np.ones(4))]),
    "precision 0": posterior([draw(rows=np.array([1.0, 1.0, 0.0, 1.0]))]),
    "negative precision": posterior([draw(columns=np.array([1.0, -1.0, 1.0]))]),
    "NaN precision": posterior([draw(columns=np.array([1.0, NAN, 1.0]))]),
    "infinite precision": posterior(mean=draw(rows=np.array([1.0, INF, 1.0, 1.0]))),
    "precisions in float32": posterior([draw(rows=np.ones(4, np.float32))]),
    "no degrees of freedom": posterior([draw(degrees=0.0)]),
    "NaN degrees of freedom": posterior([draw(degrees=NAN)]),
    "units of too few columns": posterior(units=Units.equal(0.0, 1.0, 2, None)),
    "one scale 0": posterior(units=Units(np.zeros(3), np.array([1.0, 0.0, 1.0]), None)),
    "location": posterior(units=units_of(NAN, 1.0, None)),
    "scale 0": posterior(units=units_of(0.0, 0.0, None)),
    "negative scale": posterior(units=units_of(0.0, -1.0, None)),
    "infinite scale": posterior(units=units_of(0.0, INF, None)),
    "empty range": posterior(units=units_of(0.0, 1.0, (2.0, 2.0))),
    "range backwards": posterior(units=units_of(0.0, 1.0, (5.0, 1.0))),
    "NaN range": posterior(units=units_of(0.0, 1.0, (1.0, NAN))),
}


@pytest.mark.parametrize("wrong", POSTERIORS.values(), ids=POSTERIORS)
def test_invalid_posteriors(wrong):
    with pytest.raises(ReadError, match=r"parts are inconsistent: .*\. Restore it from a copy"):
        check_posterior(wrong, SHAPE)


def with_fields(*fields):
    return in_code(TABLE, fields=fields)


FLOATS = np.ones((3, 2), np.float32)
FEATURES = {
    "weights without features": with_features(()),
    "no weights": with_features(weights=np.zeros((0, 0), np.float32)),
    "weights of too few features": with_features(weights=FLOATS[:2]),
    "weights of too few factors": with_features(weights=FLOATS[:, :1]),
    "flat weights": with_features(weights=FLOATS.ravel()),
    "weights of another type": with_features(weights=FLOATS.astype(float)),
    "NaN weights": with_features(weights=with_value(FLOATS, NAN)),
    "weights that are too large": with_features(weights=with_value(FLOATS, 1e30)),
    "weights in one draw": replace(
        with_features(), draws=[with_features().draws[0], draw()]
    ),
    "weights of the other side": with_features(column_weights=np.ones((1, 2), np.float32)),
    "features of the other side": with_features((), (PATTERN, TABLE)),
    "a block twice": with_features((PATTERN, PATTERN), weights=np.ones((4, 2), np.float32)),
    "no name": with_features((PATTERN, TABLE._replace(name=""))),
    "a table with the name of the pattern": with_features(
        (TABLE._replace(name="missingness"),), weights=FLOATS[:1]
    ),
    "a pattern with another name": with_features((PATTERN._replace(name="x"), TABLE)),
    "features of too few rows": with_features((PATTERN._replace(values=FLOATS), TABLE)),
    "features of no direction": with_features(
        (PATTERN, TABLE._replace(
            values=np.ones((4, 0), np.float32),
            code=TABLE.code._replace(directions=np.ones((4, 0), np.float32)))),
        weights=FLOATS[:2],
    ),
    "features of another type": with_features((PATTERN, TABLE._replace(values=np.ones((4, 1))))),
    "features as integers": with_features((PATTERN, TABLE._replace(values=np.ones((4, 1), int)))),
    "NaN features": with_features((PATTERN, TABLE._replace(values=with_value(TABLE.values, NAN)))),
    "flat features": with_features((PATTERN, TABLE._replace(values=TABLE.values.ravel()))),
    "directions of other columns": in_code(PATTERN, directions=np.ones((4, 2), np.float32)),
    "more directions than values": in_code(PATTERN, directions=np.ones((3, 3), np.float32)),
    "directions of another type": in_code(PATTERN, directions=np.ones((3, 2))),
    "infinite directions": in_code(PATTERN, directions=with_value(FLOATS, INF)),
    "means of too few columns": in_code(
        PATTERN, means=np.ones(2), directions=np.ones((2, 2), np.float32)
    ),
    "means of another type": in_code(PATTERN, means=np.ones(3, np.float32)),
    "NaN means": in_code(PATTERN, means=with_value(np.ones(3), NAN)),
    "means in two dimensions": in_code(PATTERN, means=np.ones((3, 1))),
    "a pattern with terms": with_features((PATTERN._replace(terms=("a", "b", "c")), TABLE)),
    "too few terms": with_features((PATTERN, TABLE._replace(terms=TABLE.terms[:-1]))),
    "too few fields": with_fields(AGE),
    "too many fields": with_fields(AGE, COLOUR, AGE._replace(name="weight")),
    "a field twice": with_fields(AGE, AGE),
    "no scale": with_fields(AGE._replace(scale=0.0), COLOUR),
    "negative scale": with_fields(AGE._replace(scale=-1.0), COLOUR),
    "infinite scale": with_fields(AGE._replace(scale=INF), COLOUR),
    "NaN mean": with_fields(AGE._replace(mean=NAN), COLOUR),
    "a number with levels": with_fields(AGE._replace(levels=("x",)), COLOUR),
    "a category without levels": with_fields(
        AGE, COLOUR._replace(levels=(), has_missing=True), AGE._replace(name="x", has_missing=False)
    ),
    "a level twice": with_fields(AGE, COLOUR._replace(levels=("red", "red"))),
}  # fmt: skip


@pytest.mark.parametrize("wrong", FEATURES.values(), ids=FEATURES)
def test_invalid_features(wrong):
    with pytest.raises(ReadError, match=r"parts are inconsistent: .*\. Restore it from a copy"):
        check_posterior(wrong, SHAPE)


ORDINALS = {
    "no scorer": ordinal([]),
    "a row less": ordinal([scorer(), scorer(m=3)]),
    "a column more": ordinal([scorer(n=4)]),
    "thresholds of fewer rows": ordinal([scorer()._replace(thresholds=np.ones((3, 4)))]),
    "a threshold less": ordinal([scorer(n_thresholds=3)]),
    "widths differ": ordinal([scorer()._replace(right=np.ones((3, 1)))]),
    "NaN": ordinal([scorer()._replace(thresholds=with_value(np.ones((4, 4)), NAN))]),
    "single precision": ordinal([scorer(dtype=np.float32)]),
    "integers": ordinal([scorer()._replace(left=np.ones((4, 2), np.int8))]),
    "no level": ordinal(levels=np.ones(0)),
    "more levels than int8 can number": ordinal([scorer(n_thresholds=127)], np.arange(128.0)),
    "levels backwards": ordinal(levels=np.arange(5.0)[::-1]),
    "levels twice": ordinal(levels=np.array([1.0, 2.0, 2.0, 3.0, 4.0])),
    "NaN levels": ordinal(levels=np.array([1.0, 2.0, 3.0, 4.0, NAN])),
    "integer levels": ordinal(levels=np.arange(5)),
    "levels in two dimensions": ordinal(levels=np.arange(5.0)[None]),
}


@pytest.mark.parametrize("wrong", ORDINALS.values(), ids=ORDINALS)
def test_invalid_ordinal_posteriors(wrong):
    with pytest.raises(ReadError, match=r"parts are inconsistent: .*\. Restore it from a copy"):
        check_ordinal(wrong, SHAPE)


TRACES = {
    "no history": traces(history={}),
    "histories of other lengths": traces(history={"a": np.ones((2, 10)), "b": np.ones((2, 9))}),
    "histories of other chains": traces(history={"a": np.ones((1, 10)), "b": np.ones((1, 10))}),
    "a history of one dimension": traces(history={"a": np.ones(10)}),
    "a history without sweeps": traces(history={"a": np.ones((2, 0))}),
    "a history of integers": traces(history={"a": np.ones((2, 10), int)}),
    "NaN": traces(history={"a": np.full((2, 10), NAN)}),
    "a longer history": traces(history={"a": np.ones((2, 12))}),
    "a shorter history": traces(history={"a": np.ones((2, 8))}),
    "spectra of one chain": traces(spectra=np.ones((1, 3, 2))),
    "no spectra": traces(spectra=np.ones((2, 0, 2))),
    "too few spectra": traces(spectra=np.ones((2, 2, 2))),
    "too many spectra": traces(spectra=np.ones((2, 5, 2))),
    "spectra in two dimensions": traces(spectra=np.ones((2, 3))),
    "NaN spectra": traces(spectra=np.full((2, 3, 2), NAN)),
    "probes of one chain": traces(probes=np.ones((1, 6, 5))),
    "fewer probes": traces(probes=np.ones((2, 6, 4))),
    "no probes": traces(
        probes=np.ones((2, 6, 0)), probe_rows=np.ones(0, int), probe_columns=np.ones(0, int)
    ),
    "infinite probes": traces(probes=np.full((2, 6, 5), INF)),
    "a row outside": traces(probe_rows=np.array([0, 4, 1, 2, 0])),
    "a column outside": traces(probe_columns=np.array([3, 0, 1, 0, 2])),
    "a negative row": traces(probe_rows=np.array([0, -1, 1, 2, 0])),
    "rows of another type": traces(probe_rows=np.zeros(5, np.int32)),
    "rows as floats": traces(probe_rows=np.zeros(5)),
    "fewer columns": traces(probe_columns=np.zeros(4, int)),
    "negative burn-in": traces(burn_in=-1),
    "a burn-in longer than the run": traces(burn_in=10**30),
    "no thinning": traces(thinning=0),
    "negative thinning": traces(thinning=-2),
    "thinning beyond the draws": traces(thinning=10**30),
    "no entries": traces(n_entries=0),
    "more entries than cells": traces(n_entries=13),
}


@pytest.mark.parametrize("wrong", TRACES.values(), ids=TRACES)
def test_invalid_traces(wrong):
    with pytest.raises(ReadError, match=r"parts are inconsistent: .*\. Restore it from a copy"):
        check_traces(wrong, SHAPE)


def test_traces_of_unusual_runs_pass():
    # Ctrl-C in the burn-in; while a sweep is recorded; a single row, with its empty copy.
    check_traces(
        traces(history={"a": np.ones((2, 3))}, probes=np.ones((2, 0, 5)), spectra=np.ones((2, 1, 2)),
               thinning=1),
        SHAPE,
    )  # fmt: skip
    check_traces(traces(probes=np.ones((2, 7, 5))), SHAPE)
    single = traces(probe_rows=np.array([0, 1, 1, 0, 0]), n_entries=3)
    check_traces(single, (1, 3))
    with pytest.raises(ReadError):
        check_traces(single._replace(probe_rows=np.array([0, 2, 1, 0, 0])), (1, 3))


SUMMARY = {
    "rank_": 1,
    "singular_values_": np.array([2.0, 1.0]),
    "noise_variance_": 0.0,
    "rank_probabilities_": {1: 0.25, 2: 0.75},
    "n_sweeps_": 10,
    "penalty_": 0.0,
    "path_": [PathPoint(1.0, INF, 2, 0.5, NAN, 3, True)],
    "history_": {"objective": np.ones(3)},
    "levels_": np.arange(2.0),
    "traces_": traces(),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank_", -1),
        ("rank_", 3),
        ("singular_values_", np.array([2.0, -1.0])),
        ("singular_values_", np.array([2.0, NAN])),
        ("singular_values_", np.ones((2, 1))),
        ("singular_values_", np.ones(0)),
        ("noise_variance_", -1.0),
        ("noise_variance_", NAN),
        ("rank_probabilities_", {}),
        ("rank_probabilities_", {1: 0.5}),
        ("rank_probabilities_", {-1: 1.0}),
        ("rank_probabilities_", {1: 2.0, 2: -1.0}),
        ("rank_probabilities_", {1: NAN}),
        ("n_sweeps_", 0),
        ("penalty_", -1.0),
        ("penalty_", INF),
        ("path_", [SUMMARY["path_"][0]._replace(penalty=NAN)]),
        ("row_noise_", np.ones(3)),
        ("row_noise_", np.array([1.0, 1.0, 1.0, -1.0])),
        ("column_noise_", np.array([1.0, NAN, 1.0])),
        ("history_", {}),
        ("history_", {"objective": np.ones(0)}),
        ("history_", {"objective": np.array(1.0)}),
        ("history_", {"objective": np.array([1.0, NAN])}),
        ("levels_", np.arange(2)),
        ("sticks_", np.ones((2, 2), np.float32)),
        ("traces_", traces(spectra=np.ones((2, 3, 0)))),
        ("traces_", traces(spectra=np.array(1.0))),
    ],
)
def test_invalid_summaries(name, value):
    check_summary(SUMMARY, SHAPE)
    check_summary({}, SHAPE)
    with pytest.raises(ReadError, match="parts are inconsistent"):
        check_summary(SUMMARY | {name: value}, SHAPE)


def test_the_shape_of_a_history():
    assert check_history({"a": np.ones((2, 3)), "b": np.zeros((2, 3))}) == (2, 3)


@pytest.mark.parametrize(
    ("name", "old", "new", "test", "case"),
    [
        ("_check_draw", "left.shape == (shape[0], right.shape[1])", "True",
         test_invalid_posteriors, POSTERIORS["a row less"]),
        ("_check_draw", "right.shape[0] == shape[1]", "True",
         test_invalid_posteriors, POSTERIORS["the mean has a column less"]),
        ("check_posterior", "(*draws, posterior.mean)", "draws",
         test_invalid_posteriors, POSTERIORS["the mean has a row less"]),
        ("_is_numeric", "np.isfinite(array)", "(array == array)",
         test_invalid_posteriors, POSTERIORS["infinite"]),
        ("_check_weights", "weights.shape == (n_features, factors.shape[1])", "True",
         test_invalid_features, FEATURES["weights of too few features"]),
        ("_check_block", "means.size == n_other", "True",
         test_invalid_features, FEATURES["means of too few columns"]),
        ("_check_block", "len(values) == n_own", "True",
         test_invalid_features, FEATURES["features of too few rows"]),
        ("_check_block", "means.size == len(terms) == n_terms", "True",
         test_invalid_features, FEATURES["too few fields"]),
        ("check_ordinal", "levels.size - 1)", "thresholds.shape[1])",
         test_invalid_ordinal_posteriors, ORDINALS["a threshold less"]),
        ("check_ordinal", "<= _MAX_LEVELS", "< np.inf",
         test_invalid_ordinal_posteriors, ORDINALS["more levels than int8 can number"]),
        ("check_traces", "positions < max(n, 2)", "positions <= max(n, 2)",
         test_invalid_traces, TRACES["a row outside"]),
        ("check_traces", "(positions >= 0)", "(positions >= -1)",
         test_invalid_traces, TRACES["a negative row"]),
    ],
)  # fmt: skip
def test_planted_bugs_accept_invalid_values(name, old, new, test, case, monkeypatch):
    plant(monkeypatch, validation, name, old, new)
    here = globals()
    monkeypatch.setitem(here, name, getattr(validation, name))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test(case)
