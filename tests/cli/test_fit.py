import numpy as np
import pytest

import fillrank as fr
from fillrank.cli import models, options
from helpers.refusals import assert_refused

QUICK = ("--sweeps", "20", "--max-rank", "2")
_FEW_ITERATIONS = (fr.SoftImpute.__init__.__kwdefaults__ or {}) | {
    "max_iterations": 1,
    "tolerance": 1e-12,
}


def test_the_model_file_is_named_after_the_table_and_has_its_entries(
    fillrank, write_wide, tmp_path
):
    ran = fillrank("fit", write_wide(), *QUICK)
    assert ran.code == 0, ran.err
    assert ran.out.endswith("table.fillrank")
    for word in ("Rank", "Noise level", "Stopped all 20 sweeps done", "Converged"):
        assert word in ran.out
    assert "a wide table" in ran.err
    assert "The fit will take about" in ran.err
    model = fr.load(tmp_path / "table.fillrank")
    assert model.method == "GASR"
    settings = model.settings
    assert [settings[key] for key in ("n_sweeps", "max_rank", "random_state")] == [20, 2, 0]
    assert len(model.observations_) == len(fr.read(tmp_path / "table.csv"))


def test_the_model_is_that_of_the_library(fillrank, write_wide, tmp_path):
    table = write_wide()
    assert fillrank("fit", table, *QUICK, "--seed", "4", "--chains", "2", "-q").code == 0
    model = fr.GASR(n_sweeps=20, max_rank=2, n_chains=2, random_state=4, progress=False)
    with pytest.warns(fr.ConvergenceWarning):
        model.fit(fr.read(table))
    cells = ("row 1", "column 2")
    assert fr.load(tmp_path / "table.fillrank").predict(*cells) == model.predict(*cells)


def test_other_methods_and_without_data(fillrank, write_wide, tmp_path):
    ran = fillrank(
        "fit", write_wide(), "-o", "m.fillrank", "--method", "softimpute", "--without-data"
    )
    assert ran.code == 0, ran.err
    assert "Converged no: the limit of 100 iterations was reached" in ran.out
    model = fr.load(tmp_path / "m.fillrank")
    assert model.method == "SoftImpute"
    assert len(model.observations_) == 0


def test_an_optimiser_that_has_not_converged_says_so(fillrank, write_wide, monkeypatch):
    monkeypatch.setattr(fr.SoftImpute.__init__, "__kwdefaults__", _FEW_ITERATIONS)
    table = write_wide()
    ran = fillrank("fit", table, "--method", "SoftImpute")
    assert ran.code == 0, ran.err
    assert "Converged no: the limit of 1 iteration was reached" in ran.out
    assert "Raise max_iterations, or tolerance" in ran.out
    for verb in (["report"], ["evaluate", "--hold-out", "0.1"]):
        ran = fillrank(*verb, table, "--method", "SoftImpute")
        assert ran.code == 0, ran.err
        assert "the limit of 1 iteration was reached" in ran.err


def test_quiet_prints_only_the_file(fillrank, write_wide):
    ran = fillrank("fit", write_wide(), *QUICK, "-q")
    assert (ran.out, ran.err) == ("table.fillrank", "")


def test_a_complete_table_can_be_fitted(fillrank, tmp_path):
    np.save(tmp_path / "full.npy", np.random.default_rng(0).normal(size=(9, 6)))
    assert fillrank("fit", "full.npy", *QUICK).code == 0


def test_invalid_options_are_rejected_before_the_table_is_read(fillrank, write_wide, tmp_path):
    table = write_wide()
    (tmp_path / "there.fillrank").write_text("precious")
    refusals = {
        ("-o", "there.fillrank"): ["already exists", "--force"],
        ("-o", "nowhere/m.fillrank"): ["nowhere is not a folder", "--output"],
        ("-o", "."): ["is a folder", "--output"],
        ("-o", "m.csv"): ["has the ending of a table", ".fillrank"],
        ("-o", "-"): ["cannot be written to standard output"],
        ("--method", "HASI", "--sweeps", "9"): [
            "--sweeps is an option of the samplers GASR and BPMF",
            "Leave it out",
        ],
        ("--method", "M3F", "--chains", "3"): [
            "--chains is an option of the samplers GASR and BPMF"
        ],
        ("--method", "M3F", "--checkpoint", "run"): [
            "--checkpoint is an option of the samplers GASR and BPMF"
        ],
    }
    for arguments, words in refusals.items():
        ran = fillrank("fit", table, *arguments)
        assert_refused(ran, *words)
        assert "Read" not in ran.err
    assert (tmp_path / "there.fillrank").read_text() == "precious"
    assert fillrank("fit", table, "-o", "there.fillrank", *QUICK, "--force").code == 0


def test_unknown_methods_are_rejected_with_a_list_of_methods(fillrank, write_wide):
    ran = fillrank("fit", write_wide(), "--method", "SVD")
    assert ran.code == 2
    for name in ("'SVD'", "GASR", "RelaxedSpectral"):
        assert name in ran.err


def test_levels_are_needed_by_methods_for_ratings(fillrank, write_wide, tmp_path):
    assert_refused(fillrank("fit", write_wide(), "--method", "M3F"), "ordered scale", "GASR")
    assert not (tmp_path / "table.fillrank").exists()


def test_an_interrupted_run_is_resumed_from_its_checkpoint(
    fillrank, write_wide, tmp_path, monkeypatch
):
    """The same bits as without an interruption."""
    table = write_wide()
    assert fillrank("fit", table, *QUICK, "-o", "whole.fillrank").code == 0
    from fillrank.run import loop

    note = loop._note

    def interrupted(recorder, step):
        if step.number == 9:
            raise KeyboardInterrupt
        return note(recorder, step)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "_note", interrupted)
        ran = fillrank("fit", table, *QUICK, "--checkpoint", "run")
        assert ran.code == 130
        assert "The run is saved in run, after 9 sweeps: the same command resumes it." in ran.err
        assert (tmp_path / "run" / "run-000000009.fillrank").exists()
        assert not (tmp_path / "table.fillrank").exists()
        ran = fillrank("fit", table, *QUICK)
        assert (ran.code, ran.out) == (130, "")
        assert "Unfinished results were removed" in ran.err
    assert fillrank("fit", table, *QUICK, "--checkpoint", "run").code == 0
    whole, taken_up = (fr.load(tmp_path / f"{name}.fillrank") for name in ("whole", "table"))
    np.testing.assert_array_equal(
        whole.predict_block(whole.observations_.row_labels, ["column 0"]),
        taken_up.predict_block(whole.observations_.row_labels, ["column 0"]),
    )


def test_what_is_said_to_be_saved_is_saved(fillrank, write_wide, tmp_path, monkeypatch):
    """Ctrl-C while the table is read, before the first sweep, and in the burn-in."""
    from fillrank.cli import source
    from fillrank.samplers import gasr

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    def names():
        return sorted(path.name for path in tmp_path.glob("run/run-*"))

    # Without the trial of noise by row, which comes before the run.
    table, quick = write_wide(), (*QUICK, "--noise", "both")
    with monkeypatch.context() as patch:
        patch.setattr(source, "read", interrupt)
        ran = fillrank("fit", table, *quick, "--checkpoint", "run")
    assert ran.code == 130
    assert "Interrupted. Nothing new was saved in run." in ran.err
    assert names() == []
    with monkeypatch.context() as patch:
        patch.setattr(gasr, "sweep", interrupt)
        ran = fillrank("fit", table, *quick, "--checkpoint", "run")
    assert ran.code == 130
    assert "The run is saved in run, after 0 sweeps: the same command resumes it." in ran.err
    assert names() == ["run-000000000.fillrank"]
    count = 0

    def interrupted(*arguments, right=gasr.sweep):
        nonlocal count
        count += 1
        return interrupt() if count > 6 else right(*arguments)  # in the fourth sweep of two chains

    with monkeypatch.context() as patch:
        patch.setattr(gasr, "sweep", interrupted)
        ran = fillrank("fit", table, *quick, "--checkpoint", "run")
    assert ran.code == 130
    assert "The run is saved in run, after 3 sweeps" in ran.err
    assert names() == ["run-000000000.fillrank", "run-000000003.fillrank"]
    assert fillrank("fit", table, *quick, "--checkpoint", "run").code == 0
    assert fillrank("fit", table, *quick, "-o", "whole.fillrank").code == 0
    assert (tmp_path / "whole.fillrank").read_bytes() == (tmp_path / "table.fillrank").read_bytes()


def test_a_run_that_could_not_be_saved_is_not_called_one_that_did_not_start(
    fillrank, write_wide, monkeypatch
):
    from fillrank.errors import OutputError
    from fillrank.run import loop
    from fillrank.run.checkpoint import Checkpoint

    def full(*_):
        raise OutputError("No space left on device.")

    def interrupted(recorder, step):
        if step.number == 9:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr(Checkpoint, "_save", full)
    monkeypatch.setattr(loop, "_note", interrupted)
    ran = fillrank("fit", write_wide(), *QUICK, "--checkpoint", "run")
    assert ran.code == 130
    assert ran.err.endswith("Interrupted. Nothing new was saved in run.")


def test_a_run_can_be_made_longer(fillrank, write_wide, tmp_path):
    """The burn-in of a resumed run stays, though one of a longer run would be longer."""
    table = write_wide()
    for sweeps in (20, 60):
        ran = fillrank(
            "fit",
            table,
            "--threads",
            "1",
            "--sweeps",
            str(sweeps),
            "--checkpoint",
            "run",
            "--force",
        )
        assert ran.code == 0, ran.err
        model = fr.load(tmp_path / "table.fillrank")
        assert (model.n_sweeps_, model.traces_.burn_in) == (sweeps, 10)
    ran = fillrank("fit", table, "--sweeps", "9", "--checkpoint", "run", "--force")
    assert_refused(ran, "--sweeps must be above 10, the burn-in of the run in", "got 9 instead")


def test_a_checkpoint_that_fails_is_reported_even_if_quiet(
    fillrank, write_wide, tmp_path, monkeypatch
):
    from fillrank.errors import OutputError
    from fillrank.storage import folders

    def full(*_):
        raise OutputError("the disk is full.")

    monkeypatch.setattr(folders, "write", full)
    ran = fillrank("fit", write_wide(), *QUICK, "-q", "--checkpoint", "run")
    assert ran.code == 0
    assert ran.err.strip() == "Note: The run continues without a checkpoint: the disk is full."


def test_a_damaged_checkpoint_is_reported_even_if_quiet(fillrank, write_wide, tmp_path):
    command = ("fit", write_wide(), *QUICK, "-q", "--checkpoint", "run", "--force")
    fillrank(*command)
    max(tmp_path.glob("run/run-*")).write_bytes(b"")
    ran = fillrank(*command)
    assert ran.code == 0
    assert "The newest checkpoint in run cannot be used: " in ran.err


def test_warnings_are_shown_as_notes(fillrank, tmp_path):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(20, 4)) * [1, 1, 1, 5000]
    np.save(tmp_path / "units.npy", table)
    solver = ("--method", "SoftImpute")
    ran = fillrank("fit", "units.npy", *solver)
    assert ran.code == 0
    assert "Note: the columns differ much in scale" in ran.err
    assert "UnitsWarning" not in ran.err
    assert fillrank("fit", "units.npy", *solver, "--force", "-q").err == ""
    assert "differ much" not in fillrank("fit", "units.npy", *QUICK, "--force").err


@pytest.mark.parametrize(
    "option", [("--units", "columns"), ("--noise", "one"), ("--robust",), ("--keep-empty",)]
)
def test_units_and_noise_are_options_of_samplers(fillrank, write_wide, option):
    ran = fillrank("fit", write_wide(), "--method", "SoftImpute", *option)
    assert ran.code != 0
    assert f"{option[0]} is an option of the samplers" in ran.err


def test_every_method_is_one_of_the_library():
    from fillrank.posterior.model_file import METHODS

    assert sorted(options.METHODS) == sorted(METHODS)
    for name in options.METHODS:
        model = models.make(models.Settings(name, max_rank=3, threads=1, seed=7), progress=False)
        assert type(model).__name__ == name
        assert (model.max_rank, model.n_threads, model.random_state) == (3, 1, 7)
