from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import fillrank as fr
from fillrank.errors import InputError, UnknownNameError
from helpers.mixed_tables import mixed_model
from helpers.quick_fits import quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


class Fixed:
    """A model with given answers."""

    def __init__(self, seen, predicted, low, high, value_range):
        fitted = quick().fit(seen)
        self.observations_ = fitted.observations_
        units = fitted.posterior_.units._replace(value_range=value_range)
        self.posterior_ = replace(fitted.posterior_, units=units)
        self._answers = np.asarray(predicted), np.asarray(low), np.asarray(high)
        self.completion_, self.is_mixed = self, False
        self.posterior, self.observations = self.posterior_, self.observations_
        self.workers = fitted.completion_.workers

    def predict_cells(self, cells, statistic):
        assert statistic == "mean"
        return self._answers[0]

    def predict_cell_intervals(self, cells, level):
        assert level == 0.8
        return self._answers[1:]

    def cell_log_density(self, cells, values):
        return -np.asarray(values)


TEST = fr.Observations.from_triplets([0, 1, 2, 3], [0, 0, 1, 1], [1.0, 4.0, 2.0, 5.0])
SEEN = np.array([[1.0, 9.0], [3.0, 4.0], [2.0, 7.0], [6.0, 5.0]])


def test_every_score_of_a_worked_example():
    # Errors 0.4, -0.4, 2, 1; after rounding to 1, 4, 4, 6: 0, 0, 2, 1.
    model = Fixed(SEEN, [1.4, 3.6, 4.0, 6.0], [0, 4.1, 2.0, 1], [2, 6, 3, 4.9], (1.0, 6.0))
    scores = fr.score(TEST, model, level=0.8)
    assert scores == pytest.approx(
        {
            # Fitted values have the variances 3.5 and 3.6875.
            "rmse_in_sd": np.sqrt(((0.16 + 0.16) / 3.5 + (4 + 1) / 3.6875) / 4),
            "rmse": np.sqrt((0.16 + 0.16 + 4 + 1) / 4),
            "mae": 3.8 / 4,
            "nmae": 3.8 / 4 / 5,
            "rmse_rounded": np.sqrt(5 / 4),
            "mae_rounded": 3 / 4,
            "nmae_rounded": 3 / 4 / 5,
            "coverage": 0.5,
            # Widths 2, 1.9, 1 and 3.9; 0.1 below the second interval and 0.1 above the last.
            "interval_score": (2 + 1.9 + 1 + 3.9 + 10 * (0.1 + 0.1)) / 4,
            "log_score": -3.0,
            "accuracy": np.nan,
        },
        nan_ok=True,
    )


def test_without_a_scale_the_range_is_that_of_the_fitted_values():
    model = Fixed(SEEN, [1, 4, 2, 7], [0] * 4, [9] * 4, None)
    scores = fr.score(TEST, model, level=0.8)
    assert scores["nmae"] == pytest.approx(2 / 4 / 8)
    assert scores["coverage"] == 1.0


def test_scores_of_a_fitted_model():
    observations, _ = fr.synthetic(60, 40, rank=2, noise=0.3, missing=0.2, random_state=0)
    train, test = observations.split(random_state=0)
    model = quick(n_sweeps=100).fit(train)
    scores = fr.score(test, model)
    error = model.predict(test.rows, test.columns) - test.values
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert 0.25 < scores["rmse"] < 0.4
    assert scores["mae"] == pytest.approx(np.abs(error).mean())
    low, high = model.predict_interval(test.rows, test.columns, kind="observation")
    assert scores["coverage"] == np.mean((low <= test.values) & (test.values <= high))
    penalties = [
        high_p - low_p + 20 * max(low_p - x, 0, x - high_p)
        for x, low_p, high_p in zip(test.values, low, high, strict=True)
    ]
    assert scores["interval_score"] == pytest.approx(np.mean(penalties))
    densities = model.log_density(test.rows, test.columns, test.values)
    assert scores["log_score"] == pytest.approx(np.mean(densities))


def test_better_predictions_have_better_scores():
    observations, _ = fr.synthetic(60, 40, rank=2, noise=0.3, missing=0.2, random_state=0)
    train, test = observations.split(random_state=0)
    good, bad = (
        fr.score(test, quick(n_sweeps=100, max_rank=rank, value_range=None).fit(train))
        for rank in (2, 1)
    )
    assert good["log_score"] > bad["log_score"]
    assert good["interval_score"] < bad["interval_score"]


def test_a_method_without_draws_has_errors_alone():
    model = fr.SoftImpute(penalty=1.0, progress=False).fit(SEEN)
    scores = fr.score(TEST, model)
    assert np.isfinite(scores["rmse"])
    assert all(np.isnan(scores[name]) for name in ("coverage", "interval_score", "log_score"))


def test_errors_in_standard_deviations_do_not_depend_on_the_units():
    """Of a table of mixed kinds they are those of numbers, as by column."""
    model, test = mixed_model()
    scores, by_column = fr.score(test, model), fr.score_by_column(test, model)
    numbers = by_column[by_column["accuracy"].isna()]
    expected = np.sqrt(np.average(numbers["rmse_in_sd"] ** 2, weights=numbers["entries"]))
    assert scores["rmse_in_sd"] == pytest.approx(expected)
    # Of columns that the model does not know, no standard deviation is known.
    known = quick(n_sweeps=20, units="table").fit(table())
    one = fr.Observations.from_triplets([0], ["new"], [1.0])
    assert np.isnan(fr.score(one, known, unknown="prior")["rmse_in_sd"])


def test_without_entries():
    model = quick().fit(table())
    with pytest.raises(InputError, match="at least one held-out entry"):
        fr.score(model.observations_._select(np.zeros(0, dtype=int)), model)


def test_limits_alone_are_not_scored():
    low, high = np.full((1, 6), -np.inf), np.full((1, 6), 0.5)
    data = fr.Observations.from_matrix(low, upper=high)
    with pytest.raises(InputError, match="at least one held-out entry with an exact value"):
        fr.score(data, quick().fit(table()[:, :6]))


@pytest.mark.parametrize(
    "score", [fr.score, fr.score_by_column, fr.score_by_level, fr.score_ranking]
)
def test_what_is_no_model_is_refused(score):
    data = fr.Observations.of(table())
    with pytest.raises(
        InputError, match="model must be a fitted model, got 'Observations' instead"
    ):
        score(quick().fit(table()), data)
    with pytest.raises(NotFittedError):
        score(data, quick())


def test_unknown_rows():
    model = quick().fit(table())
    with pytest.raises(UnknownNameError, match="20"):
        fr.score(fr.Observations.from_triplets([20], [0], [1.0]), model)
