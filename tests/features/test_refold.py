import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import fillrank as fr
from fillrank.errors import InputError, UnknownNameError
from fillrank.table.frames import fill_in

HOURS = pd.date_range("2024-05-01 05:00", periods=60, freq="h", name="when")
TABLE = pd.DataFrame(
    np.arange(180.0).reshape(60, 3), HOURS, pd.Index(["a", "b", "c"], name="sensor")
)


def completed(folded, value=-9.0):
    """The refolded table as `fit_transform` returns it, with one value in all missing cells."""
    return fill_in(folded.observations, np.full(folded.observations.shape, value))


def filled(table):
    """A table with -9 in the missing cells."""
    return table.fillna(-9.0) if isinstance(table, pd.DataFrame) else table.fill_null(-9.0)


def test_rows_are_days_of_sensors_and_columns_times_of_day():
    folded = fr.refold(TABLE)
    observations = folded.observations
    assert observations.row_labels[:4].tolist() == [
        "a | 2024-05-01",
        "a | 2024-05-02",
        "a | 2024-05-03",
        "b | 2024-05-01",
    ]
    assert observations.column_labels.tolist() == [f"{hour:02}:00" for hour in range(24)]
    assert len(observations) == 180
    cells = completed(folded)
    assert cells.loc["b | 2024-05-02", "13:00"] == TABLE.loc["2024-05-02 13:00", "b"]
    assert cells.loc["b | 2024-05-01", "04:00"] == -9  # before the first time


@st.composite
def tables(draw):
    """Frames of sensors and times with any start, step, gaps, order and missing cells."""
    step = draw(st.sampled_from(["20min", "1h", "90min", "6h", "8h"]))
    start = pd.Timestamp("2024-02-27") + draw(st.integers(0, 2000)) * pd.Timedelta("1min")
    times = pd.date_range(start, periods=draw(st.integers(10, 150)), freq=step)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    times = times[
        np.sort(rng.permutation(len(times))[: draw(st.integers(len(times) // 2, len(times)))])
    ]
    if draw(st.booleans()):
        times = times[rng.permutation(len(times))]
    n_sensors = draw(st.integers(1, 4))
    values = rng.standard_normal((len(times), n_sensors))
    values[rng.random(values.shape) < draw(st.sampled_from([0, 0.3, 0.9]))] = np.nan
    values[0, 0] = 1.5
    return pd.DataFrame(values, times, [f"s{j}" for j in range(n_sensors)])


LAYOUTS = {
    "times x sensors": lambda table: table,
    "sensors x times": lambda table: table.T,
    "sensors x text": lambda table: table.T.set_axis(table.index.astype(str), axis=1),
    "column of times": lambda table: table.reset_index(names="when"),
    "polars": lambda table: pl.from_pandas(table.reset_index(names="when")),
    "polars, sensors x times": lambda table: pl.from_pandas(
        table.set_axis(table.index.astype(str)).T.reset_index(names="sensor")
    ),
}


@settings(max_examples=25, deadline=None)
@given(tables(), st.sampled_from(["1D", "12h", "2D"]))
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_there_and_back(layout, table, period):
    table = layout(table)
    try:
        folded = fr.refold(table, period)
    except InputError as error:
        assert "same places" in str(error) or "2 periods" in str(error)  # noqa: PT017
        reject()
    restored = folded.restore(completed(folded))
    if isinstance(table, pl.DataFrame):
        assert restored.schema.names() == table.schema.names()
        assert restored.with_columns(pl.col(pl.Datetime).dt.cast_time_unit("us")).equals(
            filled(table.with_columns(pl.col(pl.Datetime).dt.cast_time_unit("us")).fill_nan(None))
        )
    else:
        pd.testing.assert_frame_equal(restored, filled(table), check_freq=False)


def test_names_of_a_pandas_table_are_restored():
    folded = fr.refold(TABLE)
    pd.testing.assert_frame_equal(folded.restore(completed(folded)), TABLE, check_freq=False)


def test_times_with_a_zone_are_restored():
    table = TABLE.tz_localize("Europe/Berlin")
    folded = fr.refold(table)
    assert folded.observations.row_labels[0] == "a | 2024-05-01"
    restored = folded.restore(completed(folded))
    assert restored.index.equals(table.index)
    np.testing.assert_array_equal(restored, table)


def test_hours_that_clocks_repeat_are_refused():
    hours = pd.date_range("2024-10-26", periods=60, freq="h", tz="Europe/Berlin")
    with pytest.raises(InputError, match=r"02:00.* is repeated.*UTC"):
        fr.refold(TABLE.set_axis(hours))
    fr.refold(TABLE.set_axis(hours.tz_convert("UTC")))


def test_arrow_and_long_tables():
    wide = TABLE.reset_index()
    folded = fr.refold(pa.Table.from_pandas(wide))
    assert folded.restore(completed(folded)).to_pandas()["b"].tolist() == TABLE["b"].tolist()
    long = wide.melt("when", var_name="sensor", value_name="value")
    folded = fr.refold(fr.Observations.from_table(long, "sensor", "when", "value"))
    assert folded.time_axis == "columns"
    np.testing.assert_array_equal(folded.restore(completed(folded)), TABLE.T)


def test_labels_of_other_periods():
    def columns_of(table, period):
        return fr.refold(table, period).observations.column_labels.tolist()

    days = pd.DataFrame(np.ones((30, 2)), pd.date_range("2024-05-01", periods=30))
    assert columns_of(days, "7D") == [f"day {j}" for j in range(1, 8)]
    assert fr.refold(days, "7D").observations.row_labels[0] == "0 | 2024-04-29"  # a Monday
    assert columns_of(TABLE, "2D")[-1] == "day 2 23:00"
    assert columns_of(TABLE, "2h") == ["00:00", "01:00"]
    assert fr.refold(TABLE, "2h").observations.row_labels[1] == "a | 2024-05-01T06:00:00"
    seconds = TABLE.set_axis(pd.date_range("2024-05-01", periods=60, freq="30s"))
    assert columns_of(seconds, "1min") == ["00:00:00", "00:00:30"]


def test_matrices_have_numbers_as_times():
    X = np.arange(30.0).reshape(3, 10)
    X[1, 4] = np.nan
    folded = fr.refold(X, 4, axis="columns")
    assert folded.observations.row_labels[:3].tolist() == ["0 | 0", "0 | 4", "0 | 8"]
    assert folded.observations.column_labels.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(folded.restore(completed(folded)), np.nan_to_num(X, nan=-9))
    folded = fr.refold(X.T, 4, axis="rows")
    np.testing.assert_array_equal(folded.restore(completed(folded)), np.nan_to_num(X.T, nan=-9))


def test_weights_and_scales_move_with_the_entries():
    X = np.arange(12.0).reshape(2, 6)
    folded = fr.refold(fr.Observations.from_matrix(X, weights=X + 1), 3, axis="columns")
    np.testing.assert_array_equal(folded.observations.weights, folded.observations.values + 1)


def test_row_features_tell_the_sensor_and_the_day():
    folded = fr.refold(TABLE.rename(columns={"a": 7}))
    features = folded.row_features
    sensors = features["sensor"].fields["sensor"]
    assert sensors.tolist()[:4] == ["7", "7", "7", "b"]  # a category, not a number
    days = features["times"].labels
    labels = [f"{sensor} | {str(day)[:10]}" for sensor, day in zip(sensors, days, strict=True)]
    assert labels == folded.observations.row_labels.tolist()


def test_a_fit_takes_the_row_features():
    folded = fr.refold(TABLE)
    model = fr.GASR(n_sweeps=20, progress=False, random_state=0)
    with pytest.warns(fr.ConvergenceWarning):
        model.fit(folded.observations, row_features=folded.row_features)
    assert [block.name for block in model.posterior_.blocks.rows][:2] == ["sensor", "times"]


def test_a_completed_table_is_matched_by_its_labels():
    folded = fr.refold(TABLE)
    shuffled = completed(folded).sample(frac=1, random_state=0).iloc[:, ::-1]
    np.testing.assert_array_equal(folded.restore(shuffled), TABLE)
    with pytest.raises(UnknownNameError, match=r"a \| 2024-05-01"):
        folded.restore(completed(folded).iloc[1:])
    matrix = completed(folded).to_numpy()
    np.testing.assert_array_equal(folded.restore(matrix), TABLE)
    with pytest.raises(InputError, match=r"of shape \(9, 24\), got \(8, 24\)"):
        folded.restore(matrix[1:])


def test_the_result_of_a_fit_is_restored():
    table = TABLE.copy()
    table.iloc[30, 1] = np.nan
    folded = fr.refold(table)
    restored = folded.restore(fr.SoftImpute(penalty=1.0).fit_transform(folded.observations))
    assert np.isfinite(restored.iloc[30, 1])
    known = table.notna().to_numpy()
    np.testing.assert_array_equal(restored.to_numpy()[known], table.to_numpy()[known])


@pytest.mark.parametrize(
    ("table", "settings", "said"),
    [
        (TABLE, {"period": "100D"}, "at least 2 periods.*'100D'"),
        (TABLE, {"period": "1.0001D"}, "60 times in 3 periods are at 60 different places"),
        (TABLE, {"period": "59min"}, "different places.*Round the times"),
        (TABLE, {"period": 3}, 'such as "1D"'),
        (TABLE, {"period": "day"}, 'such as "1D"'),
        (TABLE, {"axis": "columns"}, "must be dates.*'a'"),
        (TABLE, {"axis": "times"}, "axis must be one of"),
        (TABLE.set_axis(HOURS[:3], axis=1), {}, "those of both are.*axis="),
        (TABLE.reset_index(drop=True), {}, "those of neither are.*axis="),
        (np.ones((2, 6)), {"axis": "columns", "period": 1.5}, "a whole number.*1.5"),
        (np.ones((2, 6)), {"axis": "columns"}, "a number above 0.*'1D'"),
        (
            pd.DataFrame(np.ones((2, 4)), columns=[0, 0.5, 1, 1.5]),
            {"axis": "columns", "period": 1},
            "dates or whole numbers.*0.5",
        ),
        (TABLE.set_axis([1, "1", 2], axis=1), {}, "its own label.*1 | 2024-05-01"),
    ],
)
def test_what_cannot_be_refolded_is_refused(table, settings, said):
    with pytest.raises(InputError, match=said):
        fr.refold(table, **settings)
