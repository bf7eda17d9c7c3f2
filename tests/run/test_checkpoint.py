"""Runs that are taken up again after the process has died, or the user has thought otherwise."""

import errno
import os
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import fillrank as fr
from fillrank.data import folders, whole_files
from fillrank.data.array_file import read, write
from fillrank.errors import InputError, OutputError, ReadError
from fillrank.estimators import sampled
from fillrank.run import checkpoint, loop, recorder
from fillrank.run.checkpoint import Checkpoint
from fillrank.samplers import bpmf, gasr, gasr_published
from reference.planted_methods import plant_in_method

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
DATA, _ = fr.synthetic(20, 12, rank=1, noise=0.1, missing=0.3, random_state=0)
SETTINGS = {
    "max_rank": 3, "n_sweeps": 30, "burn_in": 12, "progress": False, "n_threads": 1, "random_state": 0,
}  # fmt: skip
PUBLISHED = fr.GASR.as_published


class Died(BaseException):
    """The end of the process, as far as a test can bring it about."""


@pytest.fixture(autouse=True)
def _unjudged(monkeypatch):
    """No run is judged at its end: that takes longer than these runs."""
    monkeypatch.setattr(sampled, "why_not_to_trust", lambda *_: "")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for a checkpoint, which is written after every sweep that it can be."""
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(whole_files, "_flush", lambda place: None)  # no power will fail
    return tmp_path / "run"


def fit(method=fr.GASR, **changes):
    return method(**(SETTINGS | changes)).fit(DATA)


def contents(model):
    """All numbers of a fitted model, as bytes."""
    parts = [*model.posterior_.draws, model.posterior_.mean, model.traces_[1:]]
    parts += [model.history_.values(), model.traces_.history.values()]
    numbers = [np.asarray(part) for each in parts for part in each]
    rank = str(model.rank_probabilities_).encode()
    return [rank, *((part.dtype.str, part.shape, part.tobytes()) for part in numbers)]


def die_in_sweep(monkeypatch, module, k, how=Died):
    """Let the process die, or otherwise end, in the sweep after the k-th, once."""
    sweep, count = module.sweep, 0

    def dying(*arguments):
        nonlocal count
        count += 1
        if count == k + 1:
            raise how
        return sweep(*arguments)

    monkeypatch.setattr(module, "sweep", dying)


@pytest.mark.parametrize(
    ("method", "module"), [(fr.GASR, gasr), (fr.BPMF, bpmf)], ids=["GASR", "BPMF"]
)
@pytest.mark.parametrize("k", [0, 3, 5, 12, 13, 20, 29])
def test_a_run_that_died_is_taken_up_to_the_same_bits(method, module, k, folder, monkeypatch):
    whole = contents(fit(method))
    die_in_sweep(monkeypatch, module, k)
    with pytest.raises(Died):
        fit(method, checkpoint=folder)
    model = fit(method, checkpoint=str(folder))
    assert model.n_sweeps_ == 30
    assert contents(model) == whole
    assert contents(fit(method, checkpoint=folder)) == whole  # nothing is left to be done


def test_only_what_is_left_is_done(folder, monkeypatch):
    fit(checkpoint=folder)
    die_in_sweep(monkeypatch, gasr, 5)
    assert fit(checkpoint=folder, n_sweeps=34).n_sweeps_ == 34  # four sweeps, not 34
    with pytest.raises(Died):
        fit()


@pytest.mark.parametrize("k", range(1, 20, 3))
def test_the_published_sampler_is_kept_between_its_estimates(k, folder, monkeypatch):
    changes = {"n_sweeps": 20, "burn_in": 0}
    whole = contents(fit(PUBLISHED, **changes))
    die_in_sweep(monkeypatch, gasr_published, k)
    with pytest.raises(Died):
        fit(PUBLISHED, checkpoint=folder, **changes)
    assert (folder / "run.fillrank").exists() == (k >= 5)
    assert contents(fit(PUBLISHED, checkpoint=folder, **changes)) == whole


def test_a_save_that_is_due_between_two_estimates_comes_after_them(folder, monkeypatch):
    """It is not put off for another minute, in which the next could be put off again."""
    now = 0.0
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 3.0)
    saved = []

    def sweep(*arguments, right=gasr.sweep):
        nonlocal now
        now += 1.0
        return right(*arguments)

    monkeypatch.setattr(gasr, "sweep", sweep)
    monkeypatch.setattr(Checkpoint, "_save", lambda self, run, about: saved.append(run.n_sweeps))
    fit(checkpoint=folder)
    # While burning in, after every fifth sweep; then after every third.
    assert saved == [5, 10, 13, 16, 19, 22, 25, 28, 30]


@pytest.mark.parametrize("n_chains", [1, 2])
def test_thinned_draws_are_deleted_and_come_back(n_chains, folder, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_DRAWS", 6 * n_chains)
    changes = {"n_chains": n_chains, "n_sweeps": 45}
    whole = contents(fit(**changes))
    for k in (17, 14, 9):
        with monkeypatch.context() as patch:
            die_in_sweep(patch, gasr, k * n_chains)
            with pytest.raises(Died):
                fit(checkpoint=folder, **changes)
    model = fit(checkpoint=folder, **changes)
    assert contents(model) == whole
    assert model.traces_.thinning == 8
    kept = sorted(path.name for path in folder.iterdir())
    assert kept == [*(f"draws-{12 + 8 * k:09d}.fillrank" for k in range(1, 5)), "run.fillrank"]


def dies(monkeypatch, folder, number):
    """Fit, and die before or after the change to the folder of this number; False if there are fewer."""
    count = 0

    def or_die(change):
        def changed(*arguments):
            nonlocal count
            for do in (lambda: None, lambda: change(*arguments)):
                do()
                count += 1
                if count == number:
                    raise Died

        return changed

    with monkeypatch.context() as patch:
        patch.setattr(folders, "write", or_die(write))
        patch.setattr(Checkpoint, "_delete_others", or_die(Checkpoint._delete_others))
        try:
            fit(checkpoint=folder, n_sweeps=10, burn_in=4)
        except Died:
            return True
    return False


def test_whenever_the_process_dies_the_folder_holds_a_run(folder, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_DRAWS", 4)
    whole = contents(fit(n_sweeps=10, burn_in=4))
    number = 1
    while dies(monkeypatch, folder, number):
        assert contents(fit(checkpoint=folder, n_sweeps=10, burn_in=4)) == whole, number
        for path in folder.iterdir():
            path.unlink()
        number += 1
    assert number > 30


@pytest.mark.parametrize(
    "changes",
    [
        # The draws are written after the run that speaks of them.
        [("self._write_draws(name, new)", "pass"),
         ("self._files = files", "if new: self._write_draws(name, new)\n    self._files = files")],
        # Draws go while the run still speaks of them.
        [("parts = _parts", "self._files = files\n    self._delete_others()\n    parts = _parts")],
        # Draws are written once more under the name of others.
        [("_DRAWS.format(run.n_sweeps)", "_DRAWS.format(run.n_sweeps // 2)")],
    ],
)  # fmt: skip
def test_planted_bugs_in_the_order_of_files_are_seen(changes, folder, monkeypatch):
    plant_in_method(monkeypatch, Checkpoint, "_save", *changes)
    with pytest.raises((AssertionError, ReadError)):
        test_whenever_the_process_dies_the_folder_holds_a_run(folder, monkeypatch)


# What may differ, and what may not


def test_another_number_of_sweeps_or_threads(folder):
    fit(checkpoint=folder, n_sweeps=20)
    model = fit(checkpoint=folder, n_sweeps=30, n_threads=2, value_range=(-1, 1))
    assert contents(model)[1:] == contents(fit(value_range=(-1, 1)))[1:]
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
    fit(checkpoint=folder, n_sweeps=14)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(
        InputError, match=f"it differs in {named}\\. Name another folder, or delete"
    ):
        fit(checkpoint=folder, **changes)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_run_of_other_data_or_another_method_is_refused(folder):
    fit(checkpoint=folder, n_sweeps=14)
    other = fr.Observations.from_triplets(DATA.rows, DATA.columns, DATA.values + 1e-9)
    with pytest.raises(InputError, match="it differs in entries"):
        fr.GASR(**SETTINGS, checkpoint=folder).fit(other)
    with pytest.raises(InputError, match=r"differs in .*method"):
        fit(fr.BPMF, checkpoint=folder)


def test_the_burn_in_is_the_same_if_it_is_said_otherwise(folder):
    fit(checkpoint=folder, n_sweeps=24, burn_in="auto")
    assert fit(checkpoint=folder, n_sweeps=26, burn_in=12).n_sweeps_ == 26


@pytest.mark.parametrize("source", [lambda: None, lambda: np.random.default_rng(7)])
def test_without_a_seed_the_kept_one_goes_on(source, folder, monkeypatch):
    die_in_sweep(monkeypatch, gasr, 20)
    with pytest.raises(Died):
        fit(checkpoint=folder, random_state=source())
    seed = read(folder / "run.fillrank", "checkpoint").about["about"]["seed"]
    model = fit(checkpoint=folder, random_state=source())
    monkeypatch.setattr(sampled, "seed_from", lambda random_state: seed)
    assert contents(model) == contents(fit(random_state=None))


def test_the_stopping_rule_stops_where_it_would_have(folder, monkeypatch):
    changes = {"n_sweeps": "auto", "burn_in": 20}
    whole = fit(**changes)
    assert whole.n_sweeps_ < loop.AUTO_MOST_SWEEPS
    die_in_sweep(monkeypatch, gasr, whole.n_sweeps_ - 3)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.05)
    with pytest.raises(Died):
        fit(checkpoint=folder, **changes)
    for _ in range(2):  # the second finds a run that is complete
        model = fit(checkpoint=folder, **changes)
        assert (model.n_sweeps_, model.stop_reason_) == (whole.n_sweeps_, whole.stop_reason_)
        assert contents(model) == contents(whole)


def test_ctrl_c_while_burning_in_and_a_new_process(folder, monkeypatch):
    """The draw that was kept in need goes once there are others."""
    whole = contents(fit())

    with monkeypatch.context() as patch:
        die_in_sweep(patch, gasr, 10, KeyboardInterrupt)
        assert fit(checkpoint=folder).interrupted_
    assert (folder / "draws-000000010.fillrank").exists()
    assert contents(fit(checkpoint=folder)) == whole
    assert not (folder / "draws-000000010.fillrank").exists()


# Folders and disks


def test_folders_that_cannot_be(folder, monkeypatch):
    folder.write_text("a file")
    for place in (folder, folder / "deeper"):
        with pytest.raises(OutputError, match=r"cannot be made: .*\. Name another\."):
            fit(checkpoint=place)
    place = folder.with_name("read-only")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OutputError, match=r"no right to write to .*read-only"):
        fit(checkpoint=place)


def test_folders_are_made(folder):
    fit(checkpoint=folder / "a" / "b")
    assert (folder / "a" / "b" / "run.fillrank").exists()


def test_a_run_on_shared_storage_is_taken_up_again(folder, monkeypatch):
    pytest.importorskip("fsspec")
    place = f"memory://{folder.parent.name}/run"
    whole = contents(fit())
    with monkeypatch.context() as patch:
        die_in_sweep(patch, gasr, 20)
        with pytest.raises(Died):
            fit(checkpoint=place)
    with monkeypatch.context() as patch:
        die_in_sweep(patch, gasr, 10)  # the twenty are not taken again
        assert contents(fit(checkpoint=place)) == whole
    with pytest.raises(InputError, match=r"memory://.*/run has the checkpoint of another run"):
        fit(checkpoint=place, random_state=1)


@pytest.mark.parametrize("which", ["run", "draws"])
@pytest.mark.parametrize("damage", ["cut", "altered", "empty", "gone", "of another kind"])
def test_damaged_files_are_told_of(which, damage, folder):
    fit(checkpoint=folder)
    path = sorted(folder.glob(f"{which}*"))[0]
    raw = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "of another kind":
        content = read(path, "checkpoint" if which == "run" else "draws of a checkpoint")
        write(path, content._replace(kind="model"))
    else:
        altered = raw[:-5] + bytes([raw[-5] ^ 1]) + raw[-4:]
        path.write_bytes({"cut": raw[:-9], "altered": altered, "empty": b""}[damage])
    if (which, damage) == ("run", "gone"):
        assert contents(fit(checkpoint=folder)) == contents(fit())  # a new run
        return
    with pytest.raises(ReadError, match=path.name) as caught:
        fit(checkpoint=folder)
    if which == "draws":
        assert "Delete the folder to begin anew." in str(caught.value)


@pytest.mark.parametrize(
    "forge",
    [
        lambda parts, arrays: parts["states"].append(parts["states"][0]),
        lambda parts, arrays: arrays.update({"states/0/left": arrays["states/0/left"][:-1].copy()}),
        lambda parts, arrays: arrays.update({"states/0/d": arrays["states/0/d"].astype("float32")}),
        lambda parts, arrays: arrays.update({"traces/probes": arrays["traces/probes"][0].copy()}),
        lambda parts, arrays: arrays.update({"traces/spectra": arrays["traces/spectra"][:, 1:].copy()}),
        lambda parts, arrays: parts["files"].update({"../run/run.fillrank": [1]}),
        lambda parts, arrays: parts["files"].update({sorted(parts["files"])[0]: [99]}),
        lambda parts, arrays: parts.pop("traces"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_this_one_is_refused(forge, folder):
    fit(checkpoint=folder)
    path = folder / "run.fillrank"
    content = read(path, "checkpoint")
    forge(content.about["parts"], content.arrays)
    write(path, content)
    with pytest.raises(ReadError, match=r"cannot be taken up: .*Delete the folder to begin anew\."):
        fit(checkpoint=folder)


def fill_disk(monkeypatch):
    """Let every flush fail as on a full disk, from now on; give what was asked to be flushed."""
    asked = []

    def full(place):
        asked.append(place)
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(whole_files, "_flush", full)
    return asked


def test_a_full_disk_is_warned_of_once_and_the_run_goes_on(folder, monkeypatch):
    fit(checkpoint=folder, n_sweeps=20)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with monkeypatch.context() as patch:
        asked = fill_disk(patch)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fit(checkpoint=folder)
    (said,) = [str(w.message) for w in caught if "checkpoint" in str(w.message)]
    assert said.startswith("The run goes on without a checkpoint: ")
    assert "the disk is full" in said
    assert len(asked) > 10  # it did not give up
    assert contents(model) == contents(fit())
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert contents(fit(checkpoint=folder)) == contents(fit())


def test_a_disk_that_is_full_at_the_end_does_not_cost_the_result(folder, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 1e9)
    fill_disk(monkeypatch)
    with pytest.warns(UserWarning, match="goes on without a checkpoint"):
        model = fit(checkpoint=folder)
    assert contents(model) == contents(fit())


def test_a_disk_with_room_again_is_used_again(folder, monkeypatch):
    asked = []

    def flush(place):
        asked.append(place)
        if len(asked) < 10:
            raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(whole_files, "_flush", flush)
    with pytest.warns(UserWarning, match="goes on without a checkpoint"):
        model = fit(checkpoint=folder)
    die_in_sweep(monkeypatch, gasr, 0)
    assert contents(fit(checkpoint=folder)) == contents(model)


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
        # It has all of this process, but shares with it the folder alone.
        if (child := os.fork()) == 0:
            checkpoint.SECONDS_BETWEEN = between
            np.save(folder + ".npy", predict(checkpoint=folder))
            os._exit(0)
        return child

    def last_save():
        path = os.path.join(folder, "run.fillrank")
        return os.stat(path).st_mtime_ns if os.path.exists(path) else 0

    expected = predict()  # all is compiled now
    for pause in np.random.default_rng(seed).uniform(0.0, 0.05, n_kills):
        before, child = last_save(), in_a_copy(between=0.0)
        while last_save() == before:  # so that every copy gets somewhere
            time.sleep(0.001)
        time.sleep(pause)
        os.kill(child, signal.SIGKILL)
        print("killed" if os.WIFSIGNALED(os.waitpid(child, 0)[1]) else "ended")
    _, status = os.waitpid(in_a_copy(between=1e9), 0)
    assert status == 0
    np.testing.assert_array_equal(np.load(folder + ".npy"), expected)
    print("same")
"""


def killed_often(method, folder, n_kills, seed, n_sweeps):
    arguments = map(str, (method, folder, n_kills, seed, n_sweeps))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLED), *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *outcomes, verdict = done.stdout.split()
    assert verdict == "same"
    assert outcomes.count("killed") == n_kills, outcomes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process")
def test_a_run_that_is_killed_again_and_again_ends_alike(tmp_path):
    killed_often("GASR", tmp_path / "run", n_kills=6, seed=0, n_sweeps=300)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process")
@pytest.mark.parametrize("method", ["GASR", "BPMF"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_that_is_killed_twenty_times_ends_alike(method, seed, tmp_path):
    killed_often(method, tmp_path / "run", n_kills=20, seed=seed, n_sweeps=1000)
