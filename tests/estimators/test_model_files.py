"""Model files: what they contain, and what is restored from them."""

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import asdict, replace
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.axes import Axes
from sklearn.exceptions import NotFittedError

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, OutputError, ReadError
from fillrank.posterior import model_file, stored_table
from fillrank.samplers.model import Noise
from fillrank.storage import array_file, atomic_write
from fillrank.storage.array_file import read
from fillrank.table.units import Units
from helpers.fitted_models import (
    DRAWN,
    MARGIN,
    METHODS,
    SAMPLED,
    cells_of,
    fit,
    fitted,
    new_rows,
    ratings,
)
from helpers.processes import LIMIT
from helpers.quick_fits import all_cells, quick, table
from reference.planted import plant

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
NAMES = pytest.mark.parametrize("name", METHODS)


def round_trip(model, path, **settings):
    model.save(path, **settings)
    return fr.load(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.fillrank"


def same(one, other):
    """Return whether two values are equal in every type, shape and bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return same(one.tolist(), other.tolist())
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (pd.DataFrame, pl.DataFrame)):
        return one.equals(other) and list(one.columns) == list(other.columns)
    return one == other or (one != one and other != other)


def results(model, name):
    """Yield (name, result) of every request that a model of this method supports."""
    n_rows, n_columns = model.observations_.shape
    rows, columns = all_cells((n_rows, n_columns))
    yield "predict", model.predict(rows, columns)
    yield "predict_block", model.predict_block([2, 0], [5, 1, 3])
    yield "transform", model.transform(new_rows(name))
    new = model.fold_in(new_rows(name))
    yield "fold_in", new.predict(*all_cells((3, n_columns)))
    yield "recommend", model.recommend(n=3)
    yield "recommend all", model.recommend([1, 0], n=2, leave_out=None)
    yield "predict_missing", list(model.predict_missing())
    yield "score", model.score(fr.Observations.of(cells_of(name)))
    if name in DRAWN:
        for kind in ("signal", "observation"):
            yield f"interval {kind}", model.predict_interval(rows, columns, 0.8, kind)
            yield f"interval {kind} of new", new.predict_interval(0, [1, 2], 0.8, kind)
        yield "cautious", model.recommend(n=3, by="cautious")
        yield "curious", model.recommend(n=3, by="curious", random_state=1)
        yield "sample_completions", model.sample_completions(3, random_state=2)
        yield "to_arviz", {k: v.values for k, v in model.to_arviz()["posterior"].items()}
    if name in ("GASR", "IPM3F gibbs"):  # it takes a second
        yield "diagnostics", vars(model.diagnostics())
    if name == "IPM3F gibbs":
        yield "predict_mean", model.predict_mean(rows, columns)


def attributes(model):
    """Return the fitted attributes, without the table."""
    completion = model.completion_
    parts = asdict(completion.posterior) | completion.record.fitted_attributes()
    return parts | {"names": completion.feature_names, "folded_in": completion.folded_in}


@NAMES
def test_a_loaded_model_is_the_same_to_the_bit(name, path):
    model = fitted(name)
    restored = round_trip(model, path, with_data=True)
    assert isinstance(restored, fr.Completion)
    assert restored.method == type(model).__name__
    assert same(restored.settings, model.completion_.settings)
    assert same(attributes(restored), attributes(model))
    for (what, got), (_, expected) in zip(
        results(restored, name), results(model, name), strict=True
    ):
        assert same(got, expected), what


@NAMES
def test_a_loaded_model_is_saved_unchanged(name, path):
    restored = path.with_name("copy")
    round_trip(fitted(name), path, with_data=True).save(restored, with_data=True)
    assert same(read(restored, "model"), read(path, "model"))
    assert restored.read_bytes() == path.read_bytes()


@NAMES
def test_two_saves_of_one_model_have_the_same_bytes(name, path):
    model = fitted(name)
    for with_data in (False, True):
        found = set()
        for _ in range(3):
            model.save(path, with_data=with_data)
            found.add(path.read_bytes())
        assert len(found) == 1


FITTED_AND_SAVED = """
    import sys, warnings
    import numpy as np
    import fillrank as fr

    warnings.simplefilter("ignore")
    data, _ = fr.synthetic(12, 9, rank=1, noise=0.1, missing=0.3, random_state=0)
    stars = fr.Observations.from_triplets(data.rows, data.columns, np.clip(data.values.round(), -1, 1))
    for name, table, changes in (
        ("GASR", data, {"n_sweeps": 12}),
        ("SoftImpute", data, {"penalty": 1.0}),
        ("M3F", stars, {"penalty": 1.0}),
    ):
        model = getattr(fr, name)(max_rank=2, random_state=0, progress=False, **changes).fit(table)
        model.save(f"{sys.argv[1]}/{name}", with_data=True)
"""


def test_the_same_fit_is_the_same_file_in_every_process(tmp_path):
    found = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        code = textwrap.dedent(FITTED_AND_SAVED)
        subprocess.run(
            [sys.executable, "-c", code, tmp_path], env=environment, check=True, timeout=LIMIT
        )
        found.append({path.name: path.read_bytes() for path in tmp_path.iterdir()})
    assert found[0].keys() == {"GASR", "SoftImpute", "M3F"}
    assert found[0] == found[1]


@NAMES
def test_a_model_of_new_rows_is_saved(name, path):
    new = fitted(name).fold_in(new_rows(name))
    restored = round_trip(new, path, with_data=True)
    assert same(attributes(restored), attributes(new))
    cells = all_cells((3, 12))
    assert same(restored.predict(*cells), new.predict(*cells))
    if name in DRAWN:
        assert same(restored.predict_interval(*cells), new.predict_interval(*cells))
        with pytest.raises(NotSupportedError, match="new rows or columns has no diagnostics"):
            restored.diagnostics()


def test_a_model_of_new_columns_is_saved(path):
    cells = cells_of("GASR", n_columns=2, seed=3)
    frame = pd.DataFrame(table(20, 12), columns=[f"c{j}" for j in range(12)])
    new = fit("GASR", frame).fold_in(pd.DataFrame(cells, columns=["x", "y"]), axis="columns")
    restored = round_trip(new, path)
    assert restored.predict(3, "y") == new.predict(3, "y")
    assert restored.observations_.shape == (20, 2)


def test_a_lost_bit_is_detected(path, monkeypatch):
    """The planted bug compresses draws that float16 cannot represent exactly."""
    plant(monkeypatch, array_file, "_compress", "np.array_equal(", "np.isfinite(half).all() or (")
    plant(monkeypatch, array_file, "_compress", "or np.any(array.view(np.uint32) & 0x1FFF)", "")
    with pytest.raises(AssertionError):
        test_a_loaded_model_is_the_same_to_the_bit("BPMF", path)


# Labels and tables


DAYS = np.arange("2020-01-01", "2020-01-07", dtype="datetime64[D]")
LABELS = {
    "ints": np.array([7, 3, 11, 2**62, -5, 0]),
    "text": np.array(["a", "b", "c", "d", "e", "f"], dtype=object),
    "unicode": np.array(["Zoë", "王", "🐢", " ", "a/b", "\\"], dtype=object),
    "dates": DAYS,
    "python dates": np.array([date(2020, 1, k) for k in range(1, 7)], dtype=object),
    "mixed": np.array([1, "1", 2.5, date(2020, 1, 1), datetime(2020, 1, 1, 12), "x"], dtype=object),
    "floats": np.array([0.1, 1.5, -2.0, 3.25, 1e300, 1e-300]),
    "bools and small ints": np.array([5, 6, 7, 8, 9, 10], dtype=np.int8),
}


@pytest.mark.parametrize("names", LABELS.values(), ids=LABELS.keys())
def test_labels_are_restored_unchanged(names, path):
    rows, columns = np.nonzero(~np.isnan(table(6, 6)))
    values = table(6, 6)[rows, columns]
    model = quick().fit(fr.Observations.from_triplets(names[rows], names[columns], values))
    restored = round_trip(model, path)
    for labels in ("row_labels", "column_labels"):
        assert same(getattr(restored.observations_, labels), getattr(model.observations_, labels))
    for row in names:
        assert same(restored.predict(row, names[1]), model.predict(row, names[1]))


def test_labels_that_cannot_be_stored_are_refused_with_advice(path):
    frame = pd.DataFrame(table(6, 4), columns=pd.MultiIndex.from_product([["a", "b"], [1, 2]]))
    model = quick().fit(frame)
    with pytest.raises(
        InputError, match=r"^row and column labels must be[^:]*; got one of type tuple\."
    ):
        model.save(path)
    assert not path.exists()


def kinds_of_tables():
    cells = table(6, 4)
    wide = pd.DataFrame(
        cells, pd.Index(list("abcdef"), name="who"), pd.Index(list("wxyz"), name="what")
    )
    long = wide.stack().rename("stars").reset_index()
    long.columns = ["user", "item", "rating"]
    dated = wide.set_axis(pd.date_range("2020-01-01", periods=6, name="day"))
    yield "array", cells
    yield "pandas", pd.DataFrame(cells, columns=list("wxyz"))
    yield "pandas, index", wide
    yield "pandas, dates", dated
    yield "pandas, numbers", pd.DataFrame(cells, columns=[4, 3, 2, 1])
    yield "pandas, column of names", wide.rename_axis(columns=None).reset_index()
    yield "pandas, long", long
    yield "polars", pl.DataFrame(cells, schema=list("wxyz"))
    yield (
        "polars, names",
        pl.DataFrame({"who": list("abcdef")} | dict(zip("wxyz", cells.T, strict=True))),
    )
    yield "polars, long", pl.from_pandas(long)
    yield "triplets", fr.Observations.of(long)


KINDS = dict(kinds_of_tables())


@pytest.mark.parametrize("kind", KINDS)
def test_results_have_the_type_of_the_table(kind, path):
    given = KINDS[kind]
    model = quick().fit(given)
    restored = round_trip(model, path, with_data=True)
    assert same(restored.observations_.origin, model.observations_.origin)
    assert same(attributes(restored), attributes(model))
    for request in (
        lambda model: model.recommend(n=2),
        lambda model: model.sample_completions(1)[0],
        lambda model: next(model.predict_missing()),
        lambda model: model.transform(given),
    ):
        got, expected = request(restored), request(model)
        assert same(got, expected)
        if isinstance(got, pd.DataFrame):
            pd.testing.assert_frame_equal(got, expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("origin.row_field,", "None,"),
        ("origin.rows_in_index,", "False,"),
        ("origin.layout,", '"long",'),
        ("observations.column_labels,", "observations.column_labels[::-1],"),
    ],
)
def test_planted_bugs_in_what_is_stored_of_a_table_are_detected(path, monkeypatch, old, new):
    plant(monkeypatch, stored_table, "stored_table", old, new, into=(model_file,))
    with pytest.raises(AssertionError):
        test_results_have_the_type_of_the_table("pandas, index", path)


def test_a_library_that_is_not_installed(path, monkeypatch):
    model = quick().fit(pl.DataFrame(table(6, 4), schema=list("wxyz")))
    model.save(path)
    monkeypatch.setattr(stored_table, "find_spec", lambda name: None)
    restored = fr.load(path)
    assert restored.observations_.origin.backend is None
    assert same(restored.predict(0, "w"), model.predict(0, "w"))


def test_plots_of_a_loaded_model(path):
    for name, plots in {"GASR": ("spectrum", "trace"), "SoftImpute": ("path",)}.items():
        model = fitted(name)
        restored = round_trip(model, path)  # without its entries
        for plot in plots:
            ax = getattr(fr.plot, plot)(restored)
            assert isinstance(ax, Axes)
            expected = getattr(fr.plot, plot)(model)
            for line, other in zip(ax.lines, expected.lines, strict=True):
                assert same(np.asarray(line.get_xydata()), np.asarray(other.get_xydata()))
    test = fr.Observations.of(table(20, 12, seed=5))
    assert isinstance(fr.plot.predicted(round_trip(fitted("GASR"), path), test), Axes)


# Observed entries are stored only on request


def marked():
    """Return a table with a value that is easy to find in a file."""
    cells = table(20, 12)
    cells[3, 4] = np.frombuffer(b"MARK" + b"ED\x01\x40")[0]
    return cells


@pytest.mark.parametrize("name", ["GASR", "GASR float64", "BPMF", "SoftImpute"])
def test_without_with_data_a_file_has_no_values(name, path):
    cells = marked()
    values = cells[~np.isnan(cells)]
    model = fit(name, cells)
    model.save(path, with_data=True)
    assert sum(value.tobytes() in path.read_bytes() for value in values) == values.size
    model.save(path)
    raw = path.read_bytes()
    standard = (
        model._standard(model.observations_, model._run_state.model)
        if name != "SoftImpute"
        else None
    )
    for form in (values, values.astype(np.float32), values.astype(np.float16)[:0]):
        assert not any(value.tobytes() in raw for value in form)
    if standard is not None:
        assert not any(value.tobytes() in raw for value in standard.rows.values)
    assert not any(repr(value).encode() in raw for value in values.tolist())
    assert len(fr.load(path).observations_) == 0


def test_the_table_of_a_model_without_its_entries_has_a_repr(path):
    fitted("SoftImpute").save(path)
    assert repr(fr.load(path).observations_).endswith("entries not stored>")


def test_a_model_without_its_entries_gives_advice(path):
    model = fitted("GASR")
    restored = round_trip(model, path)
    for request in (restored.predict_missing, restored.sample_completions):
        with pytest.raises(NotSupportedError, match=r"save\(path, with_data=True\)"):
            request()
    with pytest.raises(NotSupportedError, match="leave_out=table; or leave_out=None"):
        restored.recommend()
    with pytest.raises(NotSupportedError, match="Save it without, or fit it again"):
        restored.save(path, with_data=True)
    assert same(restored.recommend(n=3, leave_out=table(20, 12)), model.recommend(n=3))
    assert same(restored.recommend(n=3, leave_out=None), model.recommend(n=3, leave_out=None))
    restored.save(path)
    assert same(fr.load(path).predict(0, 1), model.predict(0, 1))


def test_the_settings_of_a_loaded_model_fit_it_again(path):
    loaded = round_trip(fitted("GASR"), path)
    restored = fr.GASR(**loaded.settings).fit(table(20, 12))
    assert same(attributes(restored), attributes(fitted("GASR")))


def test_small_tables_give_small_files(path):
    data, _ = fr.synthetic(300, 200, rank=3, noise=0.5, missing=0.7, random_state=0)
    model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
    model.save(path)
    assert len(model.posterior_.draws) == 128
    # 128 draws of (300 + 200) x (30 + 2) numbers of two bytes, as many precisions of eight bytes as rows
    # and columns, and two times 50 x (30 + 2) weights of two bytes; 50 features of rows and columns, and
    # traces of 200 cells.
    assert path.stat().st_size < 6_500_000


# Settings


def test_settings_of_the_machine_are_not_stored(path, tmp_path):
    folder = tmp_path / "a-secret-folder"
    for checkpoint in (folder, str(folder)):
        for source in (np.random.default_rng(0), np.random.RandomState(0)):
            settings = SAMPLED | {"random_state": source, "checkpoint": checkpoint, "n_sweeps": 10}
            model = fr.GASR(**settings).fit(table(20, 12))
            restored = round_trip(model, path)
            assert restored.settings == model.completion_.settings | {"random_state": None}
            assert b"a-secret-folder" not in path.read_bytes()
            assert same(restored.predict(0, 1), model.predict(0, 1))
            for file in folder.iterdir():
                file.unlink()


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"value_range": (-3, 3.5)}, {"value_range": [-3.0, 3.5]}),
        ({"value_range": np.array([-3.0, 3.0])}, {"value_range": [-3.0, 3.0]}),
        ({"random_state": np.int64(5), "max_rank": np.int8(2)}, {"random_state": 5, "max_rank": 2}),
        ({"n_threads": None, "value_range": None}, {"n_threads": None, "value_range": None}),
    ],
)
def test_settings_are_restored_as_plain_values(given, stored, path):
    restored = round_trip(quick(**given).fit(table()), path)
    assert same({name: restored.settings[name] for name in stored}, stored)


@pytest.mark.parametrize(
    "levels", [range(1, 6), (1, 2, 3, 4, 5), np.arange(1.0, 6.0), pd.Series([5, 4, 3, 2, 1])]
)
def test_levels_are_restored_as_a_list(levels, path):
    model = fr.M3F(levels=levels, **MARGIN).fit(ratings())
    restored = round_trip(model, path)
    assert restored.settings["levels"] == list(levels)
    assert same(restored.predict(0, 1), model.predict(0, 1))


def test_other_methods_are_refused(path):
    fitted("BPMF").save(path)
    assert fr.BPMF.load(path).method == "BPMF"
    with pytest.raises(ReadError, match=r"a model of BPMF, not of GASR\. Use fillrank\.load"):
        fr.GASR.load(path)


def test_a_model_must_be_fitted(path):
    with pytest.raises(NotFittedError):
        fr.GASR().save(path)
    assert not path.exists()


def test_methods_of_other_packages_are_refused(path):
    class Mine(fr.GASR):
        pass

    model = Mine(**SAMPLED).fit(table())
    with pytest.raises(NotSupportedError, match="got one of Mine"):
        model.save(path)
    assert not path.exists()


# Disks


def test_a_missing_folder(path):
    with pytest.raises(OutputError, match="folder does not exist"):
        fitted("GASR").save(path / "model.fillrank")
    with pytest.raises(ReadError, match="there is no file"):
        fr.load(path)


@pytest.mark.parametrize("number", ["ENOSPC", "EACCES", "EROFS"])
def test_the_old_file_is_unchanged_if_the_new_one_fails(number, path, monkeypatch):
    import errno

    fitted("GASR").save(path)
    before = path.read_bytes()

    def fail(path):
        raise OSError(getattr(errno, number), "no")

    monkeypatch.setattr(atomic_write, "_flush", fail)
    with pytest.raises(OutputError, match=r"model\.fillrank cannot be written"):
        fitted("BPMF").save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_disk_that_fills_during_the_save(path):
    """A limit on the size of files, in another process, simulates a full disk."""
    fitted("SoftImpute").save(path)
    before = path.read_bytes()
    code = f"""
        import resource, signal
        import fillrank as fr
        model = fr.load({str(path)!r})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            model.save({str(path)!r})
        except fr.FillrankError as error:
            print(type(error).__name__, error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT)
    assert re.match(r"OutputError .*the file is larger than the disk", done.stdout), done
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_noise_by_cell_and_units_by_column_are_stored(tmp_path):
    """Every number of the noise and of the units, and the answers."""
    model = fit("GASR", cells_of("GASR")).completion_
    posterior, rng = model.posterior, np.random.default_rng(0)
    m, n = posterior.shape
    draws = [
        draw._replace(noise=Noise(0.1 + t, rng.gamma(2, 0.5, m), rng.gamma(2, 0.5, n), 3.0 + t))
        for t, draw in enumerate(posterior.draws)
    ]
    units = Units(rng.normal(0, 9, n), rng.gamma(2, 1, n), None)
    uneven = replace(model, posterior=replace(posterior, draws=draws, units=units))
    uneven.save(tmp_path / "model")
    loaded = fr.load(tmp_path / "model")
    for draw, again in zip(draws, loaded.posterior.draws, strict=True):
        for one, other in zip(draw.noise, again.noise, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(units, loaded.posterior.units, strict=True):
        np.testing.assert_array_equal(one, other)
    rows, columns = model.observations.row_labels[:3], model.observations.column_labels[:3]
    np.testing.assert_array_equal(
        uneven.predict_interval(rows, columns), loaded.predict_interval(rows, columns)
    )
    np.testing.assert_array_equal(model.row_noise_, loaded.row_noise_)
    np.testing.assert_array_equal(model.column_noise_, loaded.column_noise_)
