"""Rubin's rules: numbers computed by hand, limits, and the forms in which estimates come."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import fillrank as fr
from fillrank.errors import InputError

ESTIMATES, VARIANCES = [1.0, 2.0, 3.0], [0.5, 1.0, 1.5]


def test_numbers_computed_by_hand():
    """B = 1, W = 1, T = 1 + 4/3; lambda = 4/7, nu_old = 2 (7/4)^2, nu_obs = 21/23 * 20 * 3/7."""
    pooled = fr.pool(ESTIMATES, VARIANCES, df_complete=20)
    assert pooled.estimate == 2.0
    assert (pooled.within, pooled.between) == (1.0, 1.0)
    assert pooled.variance == pytest.approx(7 / 3)
    assert pooled.relative_increase == pytest.approx(4 / 3)
    df = 1 / (1 / 6.125 + 1 / (21 / 23 * 20 * 3 / 7))
    assert pooled.df == pytest.approx(df)
    assert pooled.missing_information == pytest.approx((4 / 3 + 2 / (df + 3)) / (7 / 3))
    assert pooled.standard_error == pytest.approx(np.sqrt(7 / 3))
    assert pooled.p_value == pytest.approx(2 * stats.t.sf(2 / np.sqrt(7 / 3), df))
    expected = stats.t.interval(0.9, df, 2.0, np.sqrt(7 / 3))
    assert pooled.interval(0.9) == pytest.approx(expected)


def test_numbers_of_another_program():
    """Those of pool.scalar(estimates, variances, n=45, k=3) of R's package mice, 3.15.0."""
    variances = [0.11, 0.13, 0.095, 0.12, 0.105]
    pooled = fr.pool([0.94, 1.31, 1.07, 0.62, 1.18], variances, df_complete=45 - 3)
    assert pooled.estimate == pytest.approx(1.024, rel=1e-11)
    assert pooled.variance == pytest.approx(0.195556, rel=1e-11)
    assert pooled.df == pytest.approx(11.217471784980, rel=1e-11)
    assert pooled.relative_increase == pytest.approx(0.746035714286, rel=1e-11)
    assert pooled.missing_information == pytest.approx(0.507840529035, rel=1e-11)


def test_without_df_complete_the_degrees_are_rubins():
    assert fr.pool(ESTIMATES, VARIANCES).df == pytest.approx(2 * (7 / 4) ** 2)
    assert fr.pool(ESTIMATES, VARIANCES, np.inf).df == pytest.approx(2 * (7 / 4) ** 2)


def test_tables_that_agree_have_the_inference_of_one():
    pooled = fr.pool([2.0] * 5, [0.25] * 5, df_complete=10)
    assert (pooled.between, pooled.relative_increase, pooled.missing_information) == (0, 0, 0)
    assert pooled.variance == 0.25
    assert pooled.df == pytest.approx(11 / 13 * 10)
    large = fr.pool([2.0] * 5, [0.25] * 5)
    assert large.df == np.inf
    assert large.interval() == pytest.approx(stats.norm.interval(0.95, 2.0, 0.5))
    assert large.p_value == pytest.approx(2 * stats.norm.sf(4.0))


def test_many_tables_reach_the_limit_of_infinitely_many():
    """T -> W + B, df -> df_obs, and the fraction of missing information -> about B / T."""
    m = 20_000
    estimates = np.tile([-1.0, 1.0], m // 2)
    pooled = fr.pool(estimates, np.full(m, 3.0), df_complete=40)
    assert pooled.variance == pytest.approx(4.0, rel=1e-3)
    assert pooled.df == pytest.approx(41 / 43 * 40 * 0.75, rel=1e-2)
    assert pooled.missing_information == pytest.approx(0.25 + 0.75 * 2 / (pooled.df + 3), rel=1e-3)


def test_the_degrees_never_exceed_those_of_the_complete_table():
    rng = np.random.default_rng(0)
    for df in (1, 2, 5, 30, 1000):
        pooled = fr.pool(rng.normal(0, 0.3, (10, 50)), np.ones((10, 50)), df_complete=df)
        assert (pooled.df < df).all()
        assert (pooled.df > 0).all()


def test_estimates_without_any_variance():
    pooled = fr.pool([1.0, 1.0], [0.0, 0.0])
    assert pooled.interval() == (1.0, 1.0)
    assert pooled.p_value == 0.0


def test_vectors_are_pooled_one_by_one():
    estimates = np.array([ESTIMATES, [5.0, 5.0, 8.0]]).T
    variances = np.array([VARIANCES, [1.0, 2.0, 3.0]]).T
    both = fr.pool(estimates, variances, df_complete=[20, 30])
    for k, df in enumerate((20, 30)):
        one = fr.pool(estimates[:, k], variances[:, k], df)
        for name in ("estimate", "variance", "df", "p_value", "missing_information"):
            assert getattr(both, name)[k] == pytest.approx(getattr(one, name))
    assert both.table()["term"].tolist() == [0, 1]


def test_labels_of_series_are_matched():
    first = pd.Series({"age": 1.0, "size": 5.0})
    second = pd.Series({"size": 7.0, "age": 3.0})
    variances = [pd.Series({"size": 4.0, "age": 1.0})] * 2
    pooled = fr.pool([first, second], variances)
    assert pooled.terms == ["age", "size"]
    np.testing.assert_array_equal(pooled.estimate, [2.0, 6.0])
    np.testing.assert_array_equal(pooled.within, [1.0, 4.0])
    assert pooled.table()["term"].tolist() == ["age", "size"]


@pytest.mark.parametrize("library", [pd, pl])
def test_a_data_frame_has_a_line_for_each_table(library):
    frame = library.DataFrame({"age": ESTIMATES, "size": [5.0, 5.0, 8.0]})
    pooled = fr.pool(frame, frame * 0 + 1)
    assert pooled.terms == ["age", "size"]
    np.testing.assert_array_equal(pooled.estimate, [2.0, 6.0])


def test_a_series_of_numbers_is_a_sequence_of_numbers():
    pooled = fr.pool(pd.Series(ESTIMATES, index=list("abc")), pd.Series(VARIANCES))
    assert pooled.estimate == 2.0
    assert pooled.terms is None
    assert "term" not in pooled.table()


def test_the_representation_is_a_table():
    text = repr(fr.pool([pd.Series({"age": 1.0}), pd.Series({"age": 3.0})], [[1.0], [1.0]]))
    title, header, line = text.splitlines()
    assert "2 completed tables" in title
    assert header.split()[:2] == ["estimate", "standard_error"]
    assert line.split()[:3] == ["age", "2", "2"]
    assert "nan" not in repr(fr.pool(ESTIMATES, VARIANCES))


def test_notebooks_show_a_table():
    pooled = fr.pool([pd.Series({"a<b": 1.0})] * 2, [[1.0], [1.0]])
    html = pooled._repr_html_()
    assert html.startswith("<table>")
    assert ">a&lt;b</th>" in html
    assert html.count("<th ") == 1 + 7 + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0]), "2 completed tables or more; got 1"),
        ((1.0, 1.0), "2 completed tables or more"),
        (([1.0, 2.0], [1.0, 2.0, 3.0]), "same shape"),
        (([1.0, 2.0], [1.0, -2.0]), "at least 0"),
        (([1.0, np.nan], [1.0, 2.0]), "estimates must be finite; got nan in table 2"),
        (
            ([pd.Series({"a": 1.0, "b": 2.0})] * 2, [[1.0, 1.0], [1.0, np.nan]]),
            "variances must be finite; got nan in table 2",
        ),
        (
            ([pd.Series({"a": 1.0})] * 2, [pd.Series({"a": np.nan})] * 2),
            "got nan of 'a' in table 1",
        ),
        ((["a", "b"], [1.0, 2.0]), "real numbers"),
        (([[1.0], [2.0, 3.0]], [1.0, 2.0]), "different lengths"),
        (([1.0, 2.0], [1.0, 2.0], 0), "above 0"),
        (([1.0, 2.0], [1.0, 2.0], [3, 4, 5]), "one for each"),
        (([pd.Series({"a": 1.0}), pd.Series({"b": 1.0})], [[1.0], [1.0]]), "same labels"),
    ],
)
def test_what_cannot_be_pooled_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        fr.pool(*arguments)


def fits_of_statsmodels(m=5):
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"const": 1.0, "x": rng.normal(size=40)})
    return [sm.OLS(frame["x"] + rng.normal(size=40), frame).fit() for _ in range(m)]


def test_fits_of_statsmodels():
    fits = fits_of_statsmodels()
    pooled = fr.pool_fits(fits)
    same = fr.pool(
        [fit.params.to_numpy() for fit in fits], [fit.bse.to_numpy() ** 2 for fit in fits], 38
    )
    np.testing.assert_allclose(pooled.table().iloc[:, 1:], same.table().iloc[:, 1:])
    assert pooled.table().columns.tolist()[:6] == [
        "term", "estimate", "standard_error", "statistic", "df", "p_value",
    ]  # fmt: skip
    assert pooled.terms == ["const", "x"]


def test_one_fit_repeated_has_the_errors_of_statsmodels():
    fit = fits_of_statsmodels(2)[0]
    pooled = fr.pool_fits([fit, fit])
    np.testing.assert_allclose(pooled.standard_error, fit.bse)
    np.testing.assert_allclose(pooled.df, 39 / 41 * 38)
    # Barnard and Rubin reduce even the degrees of freedom of complete tables a little.
    low, high = pooled.interval()
    assert (low < fit.conf_int()[0]).all()
    assert (high > fit.conf_int()[1]).all()


def test_fits_with_a_covariance_only():
    fits = fits_of_statsmodels()
    bare = [
        SimpleNamespace(params=fit.params, cov_params=fit.cov_params, df_resid=fit.df_resid)
        for fit in fits
    ]
    np.testing.assert_allclose(fr.pool_fits(bare).standard_error, fr.pool_fits(fits).standard_error)


def test_the_smallest_df_counts_and_can_be_given():
    fits = [SimpleNamespace(params=[1.0], bse=np.array([1.0]), df_resid=df) for df in (9, 7)]
    assert fr.pool_fits(fits).df[0] == pytest.approx(8 / 10 * 7)
    assert fr.pool_fits(fits, df_complete=30).df[0] == pytest.approx(31 / 33 * 30)


def test_a_fit_without_what_is_needed_is_refused():
    with pytest.raises(InputError, match="has no params"):
        fr.pool_fits([SimpleNamespace(), SimpleNamespace()])
    with pytest.raises(InputError, match="2 completed tables or more; got 1"):
        fr.pool_fits([SimpleNamespace()])
    with pytest.raises(InputError, match="a list of fitted models, one for each completed table"):
        fr.pool_fits(SimpleNamespace())


def test_a_fit_with_parameters_for_each_outcome():
    smf = pytest.importorskip("statsmodels.formula.api")
    rng = np.random.default_rng(2)
    tables = [pd.DataFrame({"x": rng.normal(size=90), "y": np.arange(90) % 3}) for _ in range(3)]
    fits = [smf.mnlogit("y ~ x", table).fit(disp=0) for table in tables]
    pooled = fr.pool_fits(fits)
    assert pooled.terms == ["0: Intercept", "0: x", "1: Intercept", "1: x"]
    single = fr.pool(
        [fit.params.loc["x", 1] for fit in fits], [fit.bse.loc["x", 1] ** 2 for fit in fits]
    )
    assert pooled.estimate[3] == pytest.approx(single.estimate)
    assert pooled.variance[3] == pytest.approx(single.variance)
    arrays = [
        SimpleNamespace(params=np.asarray(fit.params), bse=np.asarray(fit.bse), df_resid=86)
        for fit in fits
    ]
    np.testing.assert_allclose(fr.pool_fits(arrays).estimate, pooled.estimate)
