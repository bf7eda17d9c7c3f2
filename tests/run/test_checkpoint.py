"""Runs that are resumed after the process was killed, or that the user makes longer."""

import errno
import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import CheckpointWarning, InputError, OutputError, ReadError
from fillrank.estimators import sampled
from fillrank.features.blocks import Blocks
from fillrank.features.given import GivenFeatures
from fillrank.run import checkpoint, loop, recorder
from fillrank.run.checkpoint import Checkpoint
from fillrank.samplers import bpmf, gasr, gasr_published, valid_states
from fillrank.storage import array_file, atomic_write, folders
from fillrank.storage.array_file import read, write
from helpers.given_features import fit_given, given_for, table_block
from helpers.processes import SLOW_LIMIT
from helpers.small_patterns import small_patterns  # noqa: F401
from reference.planted_methods import plant_in_method

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
DATA, _ = fr.synthetic(20, 12, rank=1, noise=0.1, missing=0.3, random_state=0)
SETTINGS = {
    "max_rank": 3, "n_sweeps": 30, "burn_in": 12, "n_chains": 1, "n_threads": 1, "random_state": 0,
    "progress": False,
}  # fmt: skip
PUBLISHED = fr.GASR.as_published


def newest(folder):
    """Return the newest run file of a folder."""
    return max(folder.glob("run-*.fillrank"))


class Killed(BaseException):
    """Simulates the end of the process."""


@pytest.fixture(autouse=True)
def _without_diagnostics(monkeypatch):
    """Skip the diagnostics at the end of a run, which take longer than these runs."""
    monkeypatch.setattr(sampled, "warn_unconverged", lambda *_: False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A checkpoint folder, with a save after every sweep."""
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(atomic_write, "_flush", lambda path: None)
    return tmp_path / "run"


def fit(method=fr.GASR, **changes):
    return method(**(SETTINGS | changes)).fit(DATA)


def contents(model):
    """Return all numbers of a fitted model as bytes."""
    draws = *model.posterior_.draws, model.posterior_.mean
    parts = [(*draw.noise, *(each for each in draw if each is not draw.noise)) for draw in draws]
    parts += [model.traces_[1:]]
    parts += [model.history_.values(), model.traces_.history.values()]
    numbers = [np.asarray(part) for each in parts for part in each]
    rank = str(model.rank_probabilities_).encode()
    return [rank, *((part.dtype.str, part.shape, part.tobytes()) for part in numbers)]


@cache
def _bits(method, changes, most_draws):
    return contents(fit(method, **dict(changes)))


def bits(method=fr.GASR, **changes):
    """Return the contents of a run without a checkpoint, which is done once."""
    return _bits(method, tuple(changes.items()), recorder.MOST_DRAWS)


@cache
def _files(method, changes):
    with TemporaryDirectory() as place:
        folder = Path(place, "run")
        fit(method, checkpoint=folder, **dict(changes))
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def save_run(folder, method=fr.GASR, **changes):
    """Have the files of a run in a folder that were saved after every sweep; it is done once."""
    assert checkpoint.SECONDS_BETWEEN == 0.0
    folder.mkdir()
    for name, content in _files(method, tuple(changes.items())).items():
        (folder / name).write_bytes(content)


def fail_in_sweep(monkeypatch, module, k, error=Killed):
    """Raise Killed, or another error, in the sweep after the k-th, once."""
    sweep, count = module.sweep, 0

    def failing(*arguments):
        nonlocal count
        count += 1
        if count == k + 1:
            raise error
        return sweep(*arguments)

    monkeypatch.setattr(module, "sweep", failing)


@pytest.mark.parametrize(
    ("method", "module"), [(fr.GASR, gasr), (fr.BPMF, bpmf)], ids=["GASR", "BPMF"]
)
@pytest.mark.parametrize("k", [0, 3, 5, 12, 13, 20, 29])
def test_a_killed_run_is_resumed_to_the_same_bits(method, module, k, folder, monkeypatch):
    expected = bits(method)
    fail_in_sweep(monkeypatch, module, k)
    with pytest.raises(Killed):
        fit(method, checkpoint=folder)
    model = fit(method, checkpoint=str(folder))
    assert model.n_sweeps_ == 30
    assert contents(model) == expected
    assert contents(fit(method, checkpoint=folder)) == expected  # nothing is left to do


def test_only_the_remaining_sweeps_are_done(folder, monkeypatch):
    fit(checkpoint=folder)
    fail_in_sweep(monkeypatch, gasr, 5)
    assert fit(checkpoint=folder, n_sweeps=34).n_sweeps_ == 34  # four sweeps, not 34
    with pytest.raises(Killed):
        fit()


@pytest.mark.parametrize("k", range(1, 20, 3))
def test_the_published_sampler_is_saved_between_its_estimates(k, folder, monkeypatch):
    changes = {"n_sweeps": 20, "burn_in": 0}
    expected = bits(PUBLISHED, **changes)
    fail_in_sweep(monkeypatch, gasr_published, k)
    with pytest.raises(Killed):
        fit(PUBLISHED, checkpoint=folder, **changes)
    assert newest(folder).name == f"run-{k:09d}.fillrank"
    assert contents(fit(PUBLISHED, checkpoint=folder, **changes)) == expected


def test_a_run_is_saved_at_both_ends_and_at_intervals(folder, monkeypatch):
    now = 0.0
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 3.0)
    saved = []

    def sweep(*arguments, right=gasr.sweep):
        nonlocal now
        now += 1.0
        return right(*arguments)

    monkeypatch.setattr(gasr, "sweep", sweep)
    monkeypatch.setattr(Checkpoint, "_save", lambda self, run: saved.append(run.n_sweeps))
    fit(checkpoint=folder, n_sweeps=20)
    assert saved == [0, 3, 6, 9, 12, 15, 18, 20]


@pytest.mark.parametrize("n_chains", [1, 2])
def test_thinned_draws_are_deleted_and_restored(n_chains, folder, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_DRAWS", 6 * n_chains)
    changes = {"n_chains": n_chains, "n_sweeps": 45}
    expected = bits(**changes)
    for k in (17, 14, 9):
        with monkeypatch.context() as patch:
            fail_in_sweep(patch, gasr, k * n_chains)
            with pytest.raises(Killed):
                fit(checkpoint=folder, **changes)
    model = fit(checkpoint=folder, **changes)
    assert contents(model) == expected
    assert model.traces_.thinning == 8
    names = sorted(path.name for path in folder.iterdir())
    draws = [f"draws-{12 + 8 * k:09d}.fillrank" for k in range(1, 5)]
    assert names == [*draws, "lock", "run-000000044.fillrank", "run-000000045.fillrank"]


def is_killed(monkeypatch, folder, number):
    """Fit, and stop before or after this change to the folder; return False if there are fewer."""
    count = 0

    def or_kill(change):
        def changed(*arguments):
            nonlocal count
            for do in (lambda: None, lambda: change(*arguments)):
                do()
                count += 1
                if count == number:
                    raise Killed

        return changed

    with monkeypatch.context() as patch:
        patch.setattr(folders, "write", or_kill(write))
        patch.setattr(Checkpoint, "_remove", or_kill(Checkpoint._remove))
        try:
            fit(checkpoint=folder, n_sweeps=10, burn_in=4)
        except Killed:
            return True
    return False


def test_whenever_the_process_is_killed_the_folder_has_a_run(folder, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_DRAWS", 4)
    expected = bits(n_sweeps=10, burn_in=4)
    number = 1
    warnings.simplefilter("error", CheckpointWarning)  # the newest run is valid
    while is_killed(monkeypatch, folder, number):
        assert contents(fit(checkpoint=folder, n_sweeps=10, burn_in=4)) == expected, number
        for path in folder.iterdir():
            path.unlink()
        number += 1
    assert number > 30


@pytest.mark.parametrize(
    "changes",
    [
        # The draws are written after the run that refers to them.
        [("self._write_draws(file, new)", "pass"),
         ("self._last = ", "if new: self._write_draws(file, new)\n    self._last = ")],
        # Draws are removed while the run still refers to them.
        [("self._write_run(",
          "self._remove({x for x in existing - {*files} if 'run' not in x})\n    self._write_run(")],
        # Draws are written under the name of others.
        [("_DRAWS.format(run.n_sweeps)", "_DRAWS.format(run.n_sweeps // 2)")],
    ],
)  # fmt: skip
def test_planted_bugs_in_the_order_of_writes_are_detected(changes, folder, monkeypatch):
    plant_in_method(monkeypatch, Checkpoint, "_save", *changes)
    with pytest.raises((AssertionError, ReadError, CheckpointWarning)):
        test_whenever_the_process_is_killed_the_folder_has_a_run(folder, monkeypatch)


# What may differ, and what may not


def test_another_number_of_sweeps_or_threads(folder):
    fit(checkpoint=folder, n_sweeps=20)
    model = fit(checkpoint=folder, n_sweeps=30, n_threads=2, value_range=(-1, 1))
    assert contents(model)[1:] == bits(value_range=(-1, 1))[1:]
    early = fit(checkpoint=folder, n_sweeps=25)
    assert early.n_sweeps_ == 30
    assert early.stop_reason_ == "all 30 sweeps done"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"max_rank": 2}, "max_rank"),
        ({"burn_in": 10}, "burn_in"),
        ({"effects": "rows", "centres": False}, "centres, effects"),
        ({"n_chains": 2}, "n_chains"),
        ({"dtype": "float64"}, "dtype"),
        ({"random_state": 1}, "random_state"),
        ({"random_state": None}, "random_state"),
    ],
)
def test_a_run_of_other_settings_is_refused(changes, named, folder):
    save_run(folder, n_sweeps=14)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=f"it differs in {named}\\. Use another folder, or delete"):
        fit(checkpoint=folder, **changes)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# Features


def fit_features(method=fr.GASR, given=None, **changes):
    """Fit with features of rows and columns, and those of the missing values."""
    given = given_for(DATA.shape) if given is None else given
    return fit_given(method(**(SETTINGS | changes)), DATA, given)


BOTH = pytest.mark.parametrize(
    ("method", "module"), [(fr.GASR, gasr), (fr.BPMF, bpmf)], ids=["GASR", "BPMF"]
)


@BOTH
@pytest.mark.parametrize("k", [0, 5, 12, 20])
def test_a_killed_run_with_features_is_resumed_to_the_same_bits(
    method, module, k, folder, monkeypatch
):
    expected = contents(fit_features(method))
    fail_in_sweep(monkeypatch, module, k)
    with pytest.raises(Killed):
        fit_features(method, checkpoint=folder)
    model = fit_features(method, checkpoint=folder)
    assert [len(blocks) for blocks in model.posterior_.blocks] == [2, 2]
    assert contents(model) == expected


@BOTH
def test_weights_that_are_not_restored_are_detected(method, module, folder, monkeypatch):
    expected = contents(fit_features(method))
    fail_in_sweep(monkeypatch, module, 20)
    with pytest.raises(Killed):
        fit_features(method, checkpoint=folder)
    content = read(newest(folder), "checkpoint")
    content.arrays["states/0/row_weights/B"] *= 1.0 - 1e-6
    write(newest(folder), content)
    assert contents(fit_features(method, checkpoint=folder)) != expected


def other_given():
    """Features that differ in one number, of another side, or of another name."""
    given = given_for(DATA.shape)
    (rows,), (columns,) = given.blocks
    values = rows.values.copy()
    values[3, 1] += 1e-9
    for blocks in (
        Blocks((rows._replace(values=values),), (columns,)),
        Blocks((rows._replace(name="others"),), (columns,)),
        Blocks((), (columns,)),
        Blocks((rows, columns), ()),
        Blocks(),
    ):
        yield given._replace(blocks=blocks)


def test_a_run_of_other_features_is_refused(folder):
    fit_features(checkpoint=folder, n_sweeps=14)
    for given in other_given():
        with pytest.raises(InputError, match=r"it differs in features\. Use another folder"):
            fit_features(checkpoint=folder, n_sweeps=14, given=given)
    with pytest.raises(InputError, match=r"it differs in missingness\. Use another folder"):
        fit_features(checkpoint=folder, n_sweeps=14, missingness=False)


def test_given_features_are_known_by_side():
    """In a square table those of the rows have the shape of those of the columns."""
    block = table_block(12)
    rows, columns = GivenFeatures(Blocks((block,), ())), GivenFeatures(Blocks((), (block,)))
    assert rows.identity() != columns.identity()
    assert GivenFeatures().identity() == {}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("features/0", lambda F: -F),
        ("features/1", lambda F: F[:, ::-1].copy()),
        ("features/1", lambda F: F[:, 1:]),
        ("features/0", lambda F: F.astype(float)),
        ("features/0", lambda F: F + np.float32(np.nan)),
    ],
)
def test_features_that_were_computed_otherwise_are_refused(name, change, folder):
    """The directions of the pattern are unique up to their signs, and the weights belong to them."""
    save_run(folder)
    min(folder.glob("run-*")).unlink()
    content = read(newest(folder), "checkpoint")
    content.arrays[name] = change(content.arrays[name])
    write(newest(folder), content)
    with pytest.raises(ReadError, match=r"its features are not those of this run\. If they come"):
        fit(checkpoint=folder)


def test_features_may_differ_by_rounding(folder, monkeypatch):
    save_run(folder)
    content = read(newest(folder), "checkpoint")
    content.arrays["features/0"] *= np.float32(1 + 1e-5)
    write(newest(folder), content)
    expected = bits()
    fail_in_sweep(monkeypatch, gasr, 0)
    assert contents(fit(checkpoint=folder)) == expected


@BOTH
@pytest.mark.parametrize(
    "forge",
    [
        lambda arrays: arrays.update({"states/0/row_weights/B": np.zeros((0, 0))}),
        lambda arrays: arrays["states/0/row_weights/B"].fill(np.nan),
        lambda arrays: arrays["states/0/column_weights/B"].fill(1e30),
        lambda arrays: arrays["states/0/row_weights/strengths"].fill(0.0),
        lambda arrays: arrays["states/0/row_weights/strengths"].fill(1e12),
        lambda arrays: arrays.update({"states/0/row_weights/strengths": np.ones(5)}),
        lambda arrays: arrays["traces/history/row_missingness_share"].fill(-1.0),
        lambda arrays: arrays.update(
            {"states/0/column_weights/B": arrays["states/0/column_weights/B"][:-1]}
        ),
    ],
)
def test_impossible_weights_are_refused(method, module, forge, folder):
    save_run(folder, method)
    min(folder.glob("run-*")).unlink()
    content = read(newest(folder), "checkpoint")
    forge(content.arrays)
    write(newest(folder), content)
    with pytest.raises(ReadError, match=r"cannot be resumed: .*Delete the folder to start again\."):
        fit(method, checkpoint=folder)


def test_weights_outside_the_ball_are_refused(folder):
    save_run(folder)
    min(folder.glob("run-*")).unlink()
    content = read(newest(folder), "checkpoint")
    content.arrays["states/0/row_weights/B"] += 100.0
    write(newest(folder), content)
    with pytest.raises(ReadError, match="a state that no chain can reach"):
        fit(checkpoint=folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_of_draws_must_be_finite_numbers(value, folder):
    save_run(folder)
    path = min(folder.glob("draws-*"))
    content = read(path, "draws of a checkpoint")
    content.arrays["13/0/column_weights"][0] = value
    write(path, content)
    with pytest.raises(ReadError, match="its draws are not finite numbers"):
        fit(checkpoint=folder)


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_run_without_weights_of_an_earlier_fillrank_is_refused(version, folder, monkeypatch):
    """Its states have no weights. It is refused for that, and not for a setting that it lacks."""
    save_run(folder)
    for path in folder.glob("*.fillrank"):
        kind = "checkpoint" if path.name.startswith("run") else "draws of a checkpoint"
        content = read(path, kind)
        if kind == "checkpoint":
            del content.about["identity"]["missingness"]
        with monkeypatch.context() as patch:
            patch.setattr(array_file, "VERSION", version)
            write(path, content)
    message = (
        r"cannot be resumed: run-\d+\.fillrank was written by an earlier fillrank\. Delete the"
    )
    with pytest.raises(ReadError, match=message):
        fit(checkpoint=folder)


def test_a_run_of_other_data_or_another_method_is_refused(folder):
    save_run(folder, n_sweeps=14)
    other = fr.Observations.from_triplets(DATA.rows, DATA.columns, DATA.values + 1e-9)
    with pytest.raises(InputError, match="it differs in entries"):
        fr.GASR(**SETTINGS, checkpoint=folder).fit(other)
    with pytest.raises(InputError, match=r"differs in .*method"):
        fit(fr.BPMF, checkpoint=folder)


def test_an_automatic_burn_in_equals_the_same_number(folder):
    fit(checkpoint=folder, n_sweeps=24, burn_in="auto")
    assert fit(checkpoint=folder, n_sweeps=26, burn_in=12).n_sweeps_ == 26


@pytest.mark.parametrize("method", [fr.GASR, PUBLISHED, fr.BPMF])
def test_a_run_of_few_sweeps_can_be_made_longer(method, folder, monkeypatch):
    """The burn-in of a longer run would be longer; that of a resumed run does not change."""
    short = fit(method, checkpoint=folder, n_sweeps=20, burn_in="auto")
    assert short.traces_.burn_in == 10
    longer = fit(method, checkpoint=folder, n_sweeps=30, burn_in="auto")
    assert contents(longer) == bits(method, n_sweeps=30, burn_in=10)
    if method is fr.GASR:
        monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.05)
        assert fit(checkpoint=folder, n_sweeps="auto", burn_in="auto").n_sweeps_ > 30


def test_a_run_that_would_end_in_its_burn_in_is_refused(folder):
    fit(checkpoint=folder, n_sweeps=20, burn_in="auto")
    with pytest.raises(
        InputError, match=r"n_sweeps must be above 10, the burn-in of the run in .* got 8"
    ):
        fit(checkpoint=folder, n_sweeps=8, burn_in="auto")


@pytest.mark.parametrize("source", [lambda: None, lambda: np.random.default_rng(7)])
def test_without_a_seed_the_saved_one_is_used(source, folder, monkeypatch):
    fail_in_sweep(monkeypatch, gasr, 20)
    with pytest.raises(Killed):
        fit(checkpoint=folder, random_state=source())
    seed = read(newest(folder), "checkpoint").about["seed"]
    model = fit(checkpoint=folder, random_state=source())
    monkeypatch.setattr(sampled, "seed_from", lambda random_state: seed)
    assert contents(model) == contents(fit(random_state=None))


def test_the_stopping_rule_stops_where_it_would_have(folder, monkeypatch):
    changes = {"n_sweeps": "auto", "burn_in": 20}
    complete = fit(**changes)
    assert complete.n_sweeps_ < loop.auto_most_sweeps(len(DATA))
    fail_in_sweep(monkeypatch, gasr, complete.n_sweeps_ - 3)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.05)
    with pytest.raises(Killed):
        fit(checkpoint=folder, **changes)
    for _ in range(2):  # the second finds a complete run
        model = fit(checkpoint=folder, **changes)
        assert (model.n_sweeps_, model.stop_reason_) == (complete.n_sweeps_, complete.stop_reason_)
        assert contents(model) == contents(complete)


METHODS = pytest.mark.parametrize(
    ("method", "module"),
    [(fr.GASR, gasr), (PUBLISHED, gasr_published), (fr.BPMF, bpmf)],
    ids=["GASR", "as published", "BPMF"],
)


@METHODS
@pytest.mark.parametrize("k", [0, 1, 4, 5, 8, 12, 13, 22])
def test_ctrl_c_at_any_sweep_saves_that_sweep(method, module, k, folder, monkeypatch):
    """Before the first sweep, between two estimates of the burn-in, and later."""
    expected = bits(method, n_chains=2)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 1e9)
    with monkeypatch.context() as patch:
        fail_in_sweep(patch, module, 2 * k, KeyboardInterrupt)
        if k == 0:
            with pytest.raises(KeyboardInterrupt):
                fit(method, n_chains=2, checkpoint=folder)
        else:
            assert fit(method, n_chains=2, checkpoint=folder).interrupted_
    assert newest(folder).name == f"run-{k:09d}.fillrank"
    with monkeypatch.context() as patch:
        fail_in_sweep(patch, module, 2 * (30 - k))
        assert contents(fit(method, n_chains=2, checkpoint=folder)) == expected


@pytest.mark.parametrize("k", [5, 13, 18, 20])
def test_ctrl_c_while_a_sweep_is_recorded(k, folder, monkeypatch):
    """What was recorded of an incomplete sweep is not saved."""
    monkeypatch.setattr(recorder, "MOST_DRAWS", 6)
    expected = bits()
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 1e9)

    def interrupted(self, step, right=recorder.Recorder.take):
        right(self, step)
        if step.number == k:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recorder.Recorder, "take", interrupted)
        assert fit(checkpoint=folder).n_sweeps_ == k - 1
    assert contents(fit(checkpoint=folder)) == expected


def test_ctrl_c_between_thinning_and_storing(monkeypatch):
    """The two change together, or draws would be stored that no other run stores."""
    monkeypatch.setattr(recorder, "MOST_DRAWS", 6)
    expected = bits()

    class Interrupting(recorder.Recorder):
        @property
        def thinning(self):
            return self._thinning

        @thinning.setter
        def thinning(self, value):
            self._thinning = value
            if value == 2 and not model.__dict__.get("has_been_interrupted"):
                model.has_been_interrupted = True
                raise KeyboardInterrupt

    monkeypatch.setattr(loop, "Recorder", Interrupting)
    model = fr.GASR(**SETTINGS)
    assert model.fit(DATA).interrupted_
    model.run_longer(30 - model.n_sweeps_)
    assert contents(model) == expected


# Folders and disks


def test_folders_that_cannot_be_used(folder, monkeypatch):
    folder.write_text("a file")
    for path in (folder, folder / "deeper"):
        with pytest.raises(OutputError, match=r"cannot be created: .*\. Use another folder\."):
            fit(checkpoint=path)
    path = folder.with_name("read-only")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OutputError, match=r"not have permission to write to .*read-only"):
        fit(checkpoint=path)


def test_folders_are_created(folder):
    fit(checkpoint=folder / "a" / "b")
    assert newest(folder / "a" / "b").name == "run-000000030.fillrank"


def test_a_run_on_shared_storage_is_resumed(folder, monkeypatch):
    pytest.importorskip("fsspec")
    url = f"memory://{folder.parent.name}/run"
    expected = bits()
    with monkeypatch.context() as patch:
        fail_in_sweep(patch, gasr, 20)
        with pytest.raises(Killed):
            fit(checkpoint=url)
    with monkeypatch.context() as patch:
        fail_in_sweep(patch, gasr, 10)  # the twenty are not repeated
        assert contents(fit(checkpoint=url)) == expected
    with pytest.raises(InputError, match=r"memory://.*/run has the checkpoint of another run"):
        fit(checkpoint=url, random_state=1)


DAMAGES = pytest.mark.parametrize("damage", ["cut", "altered", "empty", "gone", "of another kind"])


def damaged(path, damage):
    raw = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "of another kind":
        kind = "draws of a checkpoint" if path.name.startswith("draws") else "checkpoint"
        write(path, read(path, kind)._replace(kind="model"))
    else:
        altered = raw[:-5] + bytes([raw[-5] ^ 1]) + raw[-4:]
        path.write_bytes({"cut": raw[:-9], "altered": altered, "empty": b""}[damage])


@pytest.mark.parametrize("which", ["run", "draws"])
@DAMAGES
def test_a_damaged_newest_run_is_resumed_from_the_one_before(which, damage, folder, monkeypatch):
    expected = bits()
    save_run(folder)
    path = max(folder.glob(f"{which}-*.fillrank"))
    assert "000000030" in path.name
    damaged(path, damage)
    fail_in_sweep(monkeypatch, gasr, 1)  # only one sweep is lost
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert contents(fit(checkpoint=folder)) == expected
    caught = [warning for warning in caught if warning.category is CheckpointWarning]
    if (which, damage) == ("run", "gone"):
        assert caught == []  # there is no trace of it
    else:
        (warning,) = caught
        assert f"The newest checkpoint in {folder} cannot be used: " in str(warning.message)
        assert path.name in str(warning.message)
        assert "The run is resumed from the one before, after 29 sweeps." in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)
        assert contents(fit(checkpoint=folder)) == expected  # it has been saved again


def test_draws_that_only_the_older_run_needs_are_retained(folder, monkeypatch):
    """The last sweep has thinned the draws."""
    monkeypatch.setattr(recorder, "MOST_DRAWS", 6)
    expected = bits(n_sweeps=18)
    model = fit(checkpoint=folder, n_sweeps=18)
    assert model.traces_.thinning == 2
    damaged(newest(folder), "cut")
    with pytest.warns(CheckpointWarning, match="after 17 sweeps"):
        assert contents(fit(checkpoint=folder, n_sweeps=18)) == expected


def test_planted_bugs_in_what_the_older_run_needs_are_detected(folder, monkeypatch):
    wrong = ("({last.run, *last.draws} if last else set())", "({last.run} if last else set())")
    plant_in_method(monkeypatch, Checkpoint, "_save", wrong)
    with pytest.raises((ReadError, pytest.fail.Exception)):
        test_draws_that_only_the_older_run_needs_are_retained(folder, monkeypatch)


@DAMAGES
def test_damaged_draws_that_both_runs_need(damage, folder):
    save_run(folder)
    path = min(folder.glob("draws-*.fillrank"))
    damaged(path, damage)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ReadError, match=path.name) as caught:
        fit(checkpoint=folder)
    assert "Delete the folder to start again." in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_two_damaged_runs_are_refused(folder):
    save_run(folder)
    for path in folder.glob("run-*.fillrank"):
        damaged(path, "cut")
    with pytest.raises(ReadError, match=r"run-000000030.* is damaged.* Delete the folder"):
        fit(checkpoint=folder)


def test_a_damaged_run_is_removed_once_another_is_saved(folder, monkeypatch):
    """Even though its number is higher than those of the next saves."""
    expected = bits(n_sweeps=40)
    fit(checkpoint=folder)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 1e9)
    fit(checkpoint=folder, n_sweeps=37)
    damaged(newest(folder), "cut")
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    fail_in_sweep(monkeypatch, gasr, 3)
    with pytest.warns(CheckpointWarning, match="after 30 sweeps"), pytest.raises(Killed):
        fit(checkpoint=folder, n_sweeps=40)
    names = sorted(path.name for path in folder.glob("run-*"))
    assert names == ["run-000000032.fillrank", "run-000000033.fillrank"]
    assert contents(fit(checkpoint=folder, n_sweeps=40)) == expected


def test_a_run_of_an_earlier_fillrank_is_refused(folder):
    folder.mkdir()
    (folder / "run.fillrank").write_bytes(b"whatever it was")
    with pytest.raises(ReadError, match=r"written by an earlier fillrank .*delete this one"):
        fit(checkpoint=folder)


def change(name, value):
    """Return a function that writes another value into the JSON document."""

    def forge(about, arrays):
        *path, last = name.split("/")
        for key in path:
            about = about[int(key) if key.isdigit() else key]
        about[int(last) if last.isdigit() else last] = value

    return forge


def rework(name, make):
    """Return a function that replaces an array by one made from it."""

    def forge(about, arrays):
        arrays[name] = np.ascontiguousarray(make(arrays[name]))

    return forge


def fill(name, value):
    """Return a function that fills an array with a number."""
    return rework(name, lambda array: np.full_like(array, value))


def more_chains(about, arrays):
    about["parts"]["states"].append(about["parts"]["states"][0])


def a_file_elsewhere(about, arrays):
    about["parts"]["files"]["../run/run-000000030.fillrank"] = [1]


def another_sweep(about, arrays):
    files = about["parts"]["files"]
    files[min(files)] = [99]


FORGERIES = [
    change("identity", 5), change("identity", None), change("identity/entries", [1]),
    change("seed", None), change("seed", "x"), change("seed", -1), change("seed", 2**40),
    change("seed", 1.5),
    change("parts", []), change("parts/n_sweeps", -5), change("parts/n_sweeps", 10**9),
    change("parts/n_sweeps", 29), change("parts/n_sweeps", "x"),
    change("parts/states/0/sweep", 29), change("parts/states/0/sweep", 10**30),
    change("parts/states/0/noise/cells/variance", -1.0),
    change("parts/states/0/noise/cells/variance", 1e300),
    change("parts/states/0/noise/cells/degrees", {"float": "nan"}),
    change("parts/states/0/noise/cells/degrees", 1.0),
    change("parts/states/0/noise/row_degrees", {"float": "inf"}),
    change("parts/states/0/noise/column_degrees", 0.0),
    fill("states/0/noise/cells/rows", 0.0), fill("states/0/noise/cells/columns", np.nan),
    rework("states/0/noise/cells/rows", lambda rows: rows[1:]),
    change("parts/states/0/a", 0.0), change("parts/states/0/b", {"float": "nan"}),
    change("parts/states/0/row_effect/variance", 0.0), change("parts/states/0/row_effect/mean", 1e200),
    change("parts/infos", []), change("parts/infos", [[{}]]),
    change("parts/traces/burn_in", 3), change("parts/traces/thinning", 0),
    change("parts/traces/thinning", 2), change("parts/traces/n_entries", 5),
    change("parts/traces/history", {}), change("parts/files", {}),
    more_chains, a_file_elsewhere, another_sweep,
    rework("states/0/left", lambda left: left[:-1]), rework("states/0/left", lambda left: left.T),
    rework("states/0/d", lambda d: d.astype("float32")),
    fill("states/0/left", np.nan), fill("states/0/left", 1e30),
    fill("states/0/d", -1), fill("states/0/d", 1e300),
    fill("states/0/mu", np.inf), fill("states/0/mu", 2), fill("states/0/right", 1e3),
    change("parts/states/0/a", 1e9), change("parts/states/0/b", 1e-11),
    rework("traces/probes", lambda probes: probes[0]), fill("traces/probes", np.nan),
    rework("traces/spectra", lambda spectra: spectra[:, 1:]), fill("traces/spectra", -1),
    rework("traces/spectra", lambda spectra: spectra[..., :1]),
    fill("traces/probe_rows", 10**9), fill("traces/probe_columns", -1),
    fill("traces/history/noise_variance", np.nan), fill("traces/history/a", -1),
    rework("traces/history/a", lambda trace: trace[:, 1:]),
]  # fmt: skip


@pytest.mark.parametrize("forge", FORGERIES)
def test_an_impossible_run_is_refused(forge, folder):
    save_run(folder)
    min(folder.glob("run-*")).unlink()
    path = newest(folder)
    content = read(path, "checkpoint")
    forge(content.about, content.arrays)
    write(path, content)
    with pytest.raises(ReadError, match=r"cannot be resumed: .*Delete the folder to start again\."):
        fit(checkpoint=folder)


@pytest.mark.parametrize(
    "forge",
    [
        change("parts/infos/0", []),
        change("parts/infos/0/0/residual_square", -1.0),
        rework("infos/0/0/d", lambda d: d[:-1]),
        rework("infos/0/0/d", lambda d: d.astype("int8")),
        change("parts/infos/0/0/residual_square", 1e300),
        fill("infos/0/0/d", -1),
        fill("infos/0/0/d", 1e300),
    ],
)
def test_the_sweeps_since_the_last_estimate_are_checked(forge, folder, monkeypatch):
    fail_in_sweep(monkeypatch, gasr_published, 14)
    with pytest.raises(Killed):
        fit(PUBLISHED, checkpoint=folder, n_chains=2)
    assert newest(folder).name == "run-000000007.fillrank"
    content = read(newest(folder), "checkpoint")
    forge(content.about, content.arrays)
    used = {name for name in content.arrays if not name.startswith("infos/0")}
    if content.about["parts"]["infos"][0] == []:
        content = content._replace(arrays={name: content.arrays[name] for name in used})
    write(newest(folder), content)
    fail_in_sweep(monkeypatch, gasr_published, 0)
    with pytest.warns(CheckpointWarning, match="after 6 sweeps"), pytest.raises(Killed):
        fit(PUBLISHED, checkpoint=folder, n_chains=2)


def tables():
    """Return tables on which chains reach extreme states."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=(20, 1)) @ rng.normal(size=(1, 12))
    outlier = 1e-3 * rng.normal(size=(20, 12))
    outlier[3, 4] = 1e6
    rows = np.tile(rng.normal(size=12), (20, 1))
    made = {
        "noise-free": one, "tiny": 1e-9 * one, "huge": 1e9 * one, "outlier": outlier,
        "equal rows": rows, "equal columns": rows.T, "noise": rng.normal(size=(20, 12)),
        "long": rng.normal(size=(3000, 2)), "yes and no": (one > 0).astype(float),
    }  # fmt: skip
    for cells in made.values():
        cells[rng.random(cells.shape) < 0.2] = np.nan
    return made


@METHODS
@pytest.mark.parametrize("name", tables())
def test_the_states_of_real_chains_are_valid(method, module, name, monkeypatch):
    """No run is refused, nor close to it, for the states of its chains."""
    model = method(**(SETTINGS | {"n_sweeps": 120, "burn_in": 60}))

    def is_valid(chain):
        if module is bpmf:
            return valid_states.is_valid_bpmf_state(chain.state, chain.infos)
        return valid_states.is_valid_gasr_state(chain.state, chain.infos, chain.context.features)

    monkeypatch.setattr(valid_states, "LARGEST_ENTRY", 1e6)
    monkeypatch.setattr(valid_states, "LARGEST_SIGNAL", 1e9)
    monkeypatch.setattr(valid_states, "_BEYOND", 1e-4)
    seen = []

    def take(self, step, right=recorder.Recorder.take):
        right(self, step)
        seen.extend(map(is_valid, step.chains))

    monkeypatch.setattr(recorder.Recorder, "take", take)
    model.fit(tables()[name])
    assert seen == [True] * 120


@pytest.mark.parametrize(
    "forge",
    [
        fill("states/0/left", 1e12),
        fill("states/0/right", np.nan),
        change("parts/states/0/noise/cells/variance", 0.0),
        fill("states/0/noise/cells/rows", np.inf),
        change("parts/states/0/noise/column_degrees", 0.0),
        change("parts/infos/0", [{"residual_square": 1.0}]),
        rework("states/0/row_law/T", lambda T: T[:1]),
    ],
)
def test_an_impossible_run_of_bpmf_is_refused(forge, folder):
    save_run(folder, fr.BPMF)
    min(folder.glob("run-*")).unlink()
    content = read(newest(folder), "checkpoint")
    forge(content.about, content.arrays)
    write(newest(folder), content)
    with pytest.raises(ReadError, match=r"cannot be resumed: .*Delete the folder to start again\."):
        fit(fr.BPMF, checkpoint=folder)


def test_thinning_begins_with_the_draws(folder, monkeypatch):
    fail_in_sweep(monkeypatch, gasr, 3)
    with pytest.raises(Killed):
        fit(checkpoint=folder)
    content = read(newest(folder), "checkpoint")
    change("parts/traces/thinning", 2**20)(content.about, content.arrays)
    write(newest(folder), content)
    with pytest.warns(CheckpointWarning, match="lacks draws of its sweeps"):
        fit(checkpoint=folder)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_draws_must_be_finite_numbers(value, folder):
    save_run(folder)
    path = min(folder.glob("draws-*"))
    content = read(path, "draws of a checkpoint")
    if value < 0:
        content.about["draws"]["13"][0]["noise"]["variance"] = value
    else:
        content.arrays["13/0/left"][0] = value
    write(path, content)
    with pytest.raises(ReadError, match="its draws are not finite numbers"):
        fit(checkpoint=folder)


def fill_disk(monkeypatch):
    """Make every flush fail as on a full disk; return a list of the paths to flush."""
    flushed = []

    def full(path):
        flushed.append(path)
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(atomic_write, "_flush", full)
    return flushed


def test_a_full_disk_gives_one_warning_and_the_run_continues(folder, monkeypatch):
    fit(checkpoint=folder, n_sweeps=20)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with monkeypatch.context() as patch:
        flushed = fill_disk(patch)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fit(checkpoint=folder)
    (message,) = [str(w.message) for w in caught if "checkpoint" in str(w.message)]
    assert message.startswith("The run continues without a checkpoint: ")
    assert "the disk is full" in message
    assert len(flushed) > 10  # it tried again after each sweep
    assert contents(model) == bits()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert contents(fit(checkpoint=folder)) == bits()


def test_a_disk_that_is_full_at_the_end_does_not_lose_the_result(folder, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 1e9)
    fill_disk(monkeypatch)
    with pytest.warns(UserWarning, match="continues without a checkpoint"):
        model = fit(checkpoint=folder)
    assert contents(model) == bits()


def test_saving_continues_once_the_disk_has_space(folder, monkeypatch):
    flushed = []

    def flush(path):
        flushed.append(path)
        if len(flushed) < 10:
            raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(atomic_write, "_flush", flush)
    with pytest.warns(UserWarning, match="continues without a checkpoint"):
        model = fit(checkpoint=folder)
    fail_in_sweep(monkeypatch, gasr, 0)
    assert contents(fit(checkpoint=folder)) == contents(model)


# Another process

HOLDER = """
    import sys, time
    from fillrank.run.checkpoint import Checkpoint

    checkpoint = Checkpoint(sys.argv[1])
    print("here", flush=True)
    time.sleep(300)
"""


def test_a_folder_is_locked_until_its_process_ends(folder):
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "here\n"
            message = rf"the folder {folder} is in use: process {holder.pid} on .*Wait until"
            with pytest.raises(OutputError, match=message):
                fit(checkpoint=folder)
        finally:
            holder.kill()
    assert (folder / "lock").exists()
    assert fit(checkpoint=folder).n_sweeps_ == 30


def test_a_folder_is_locked_by_one_fit_of_a_process(folder):
    with Checkpoint(folder), pytest.raises(OutputError, match="is in use"):
        fit(checkpoint=folder)
    fit(checkpoint=folder, n_sweeps=14)
    with pytest.raises(InputError, match="another run"):
        fit(checkpoint=folder, n_sweeps=14, random_state=1)
    damaged(newest(folder), "cut")
    damaged(min(folder.glob("run-*")), "cut")
    for _ in range(2):
        with pytest.raises(ReadError):
            fit(checkpoint=folder)


def test_a_file_system_without_locks(folder, monkeypatch):
    def unsupported(handle):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(folders, "_try_lock", unsupported)
    with Checkpoint(folder):
        assert fit(checkpoint=folder).n_sweeps_ == 30


def test_on_shared_storage_the_last_process_owns_the_folder(folder, monkeypatch):
    pytest.importorskip("fsspec")
    url = f"memory://{folder.parent.name}/two"
    expected = bits()
    second = []

    def sweep(state, data, context, right=gasr.sweep):
        if state.sweep == 20 and not second:
            second.append(1)
            second.append(contents(fit(checkpoint=url)))
        return right(state, data, context)

    with monkeypatch.context() as patch:
        patch.setattr(gasr, "sweep", sweep)
        with pytest.warns(
            CheckpointWarning, match=r"without a checkpoint: another process has .*two"
        ):
            first = fit(checkpoint=url)
    assert contents(first) == second[1] == expected
    fail_in_sweep(monkeypatch, gasr, 0)
    assert contents(fit(checkpoint=url)) == expected


def test_temporary_files_of_killed_processes_are_removed(folder):
    fit(checkpoint=folder, n_sweeps=14)
    left = [f".run-000000003.fillrank.{'0' * 16}", f".draws-000000003.fillrank.{'a1' * 8}"]
    theirs = [f".model.fillrank.{'0' * 16}", "run-3.fillrank.txt", "notes.txt"]
    for name in (*left, *theirs):
        (folder / name).write_bytes(b"half")
    fit(checkpoint=folder, n_sweeps=14)
    names = {path.name for path in folder.iterdir()}
    assert not names & set(left)
    assert names >= set(theirs)


def test_temporary_files_on_shared_storage_are_removed(folder, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    url = f"memory://{folder.parent.name}/left"
    storage, path = fsspec.core.url_to_fs(url)
    right = type(storage).mv

    def killed(*arguments, **settings):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "mv", killed)
        with pytest.raises(Killed):
            fit(checkpoint=url)
    assert any("coming-" in name for name in storage.ls(path, detail=False))
    assert type(storage).mv is right
    fit(checkpoint=url)
    names = {name.rsplit("/", 1)[1] for name in storage.ls(path, detail=False)}
    assert all(name.startswith(("run-", "draws-")) for name in names)


def test_files_that_were_deleted_meanwhile_are_rewritten(folder, monkeypatch):
    expected = bits()

    def sweep(state, data, context, right=gasr.sweep):
        if state.sweep == 20:
            for path in folder.glob("*.fillrank"):
                path.unlink()
        return right(state, data, context)

    with monkeypatch.context() as patch:
        patch.setattr(gasr, "sweep", sweep)
        fit(checkpoint=folder)
    fail_in_sweep(monkeypatch, gasr, 0)
    assert contents(fit(checkpoint=folder)) == expected


def test_a_folder_that_was_deleted_meanwhile_gives_a_warning(folder, monkeypatch):
    expected = bits()

    def sweep(state, data, context, right=gasr.sweep):
        if state.sweep == 20:
            shutil.rmtree(folder)
        return right(state, data, context)

    monkeypatch.setattr(gasr, "sweep", sweep)
    with pytest.warns(
        CheckpointWarning, match="without a checkpoint: the checkpoint folder .* cannot be read"
    ):
        assert contents(fit(checkpoint=folder)) == expected


# Killed

KILLED = """
    import os, signal, sys, time
    import numpy as np
    import fillrank as fr
    from fillrank.run import checkpoint, recorder

    method, folder, n_kills, seed, n_sweeps = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    recorder.MOST_DRAWS = 40
    data, _ = fr.synthetic(30, 20, rank=2, noise=0.2, missing=0.3, random_state=1)
    settings = dict(n_sweeps=n_sweeps, burn_in=20, max_rank=4, random_state=3, progress=False)
    rows, columns = np.indices(data.shape).reshape(2, -1)

    def predict(**changes):
        model = getattr(fr, method)(**settings, **changes, n_threads=1).fit(data)
        return [model.predict(rows, columns), *model.predict_interval(rows, columns)]

    def in_a_copy(between):
        # The copy shares only the folder with this process.
        if (child := os.fork()) == 0:
            checkpoint.SECONDS_BETWEEN = between
            np.save(folder + ".npy", predict(checkpoint=folder))
            os._exit(0)
        return child

    def last_save():
        names = os.listdir(folder) if os.path.exists(folder) else []
        return max((name for name in names if name.startswith("run-")), default="")

    expected = predict()  # everything is compiled now
    for pause in np.random.default_rng(seed).uniform(0.0, 0.05, n_kills):
        before, child = last_save(), in_a_copy(between=0.0)
        end = time.monotonic() + 60
        while last_save() == before:  # so that every copy makes progress
            assert time.monotonic() < end, "waited 60 seconds for a copy to save its run"
            time.sleep(0.001)
        time.sleep(pause)
        os.kill(child, signal.SIGKILL)
        print("killed" if os.WIFSIGNALED(os.waitpid(child, 0)[1]) else "ended")
    _, status = os.waitpid(in_a_copy(between=1e9), 0)
    assert status == 0
    np.testing.assert_array_equal(np.load(folder + ".npy"), expected)
    assert not [name for name in os.listdir(folder) if name.startswith(".")]
    print("same")
"""


def killed_often(method, folder, n_kills, seed, n_sweeps):
    arguments = map(str, (method, folder, n_kills, seed, n_sweeps))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLED), *arguments],
        capture_output=True, text=True, check=False, timeout=SLOW_LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *outcomes, verdict = done.stdout.split()
    assert verdict == "same"
    assert outcomes.count("killed") == n_kills, outcomes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process")
def test_a_run_that_is_killed_six_times_ends_the_same(tmp_path):
    killed_often("GASR", tmp_path / "run", n_kills=6, seed=0, n_sweeps=300)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process")
@pytest.mark.parametrize("method", ["GASR", "BPMF"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_that_is_killed_twenty_times_ends_the_same(method, seed, tmp_path):
    killed_often(method, tmp_path / "run", n_kills=20, seed=seed, n_sweeps=1000)
