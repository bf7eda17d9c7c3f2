import pytest

from fillrank.errors import Setting
from helpers.refusals import assert_refused

QUICK = ("--sweeps", "30", "--max-rank", "2")


@pytest.fixture
def interfaces():
    """For whom the reports were made."""
    return []


@pytest.fixture
def asked(monkeypatch, interfaces):
    """What the report was asked for; nothing is drawn."""
    calls = []

    def report(model, path, test=None, title=None, *, tested=None, interface, **titles):
        calls.append((model, test, title, tested))
        interfaces.append(interface)
        path.touch()

    monkeypatch.setattr("fillrank.report.html.write_report", report)
    return calls


def test_held_out_entries_are_predicted_by_a_model_without_them(fillrank, write_wide, asked):
    ran = fillrank("report", write_wide(), *QUICK)
    assert ran.code == 0, ran.err
    assert ran.out == "table-report.html"
    ((model, test, title, tested),) = asked
    assert title.endswith("table.csv")
    assert len(model.observations_) == len(test) + len(tested.observations_)
    assert "2 fits will take" in ran.err


def test_report_of_a_table_without_held_out_entries(fillrank, write_wide, asked):
    assert fillrank("report", write_wide(), *QUICK, "--hold-out", "0", "-o", "a.html").code == 0
    ((_, test, _, tested),) = asked
    assert test is None
    assert tested is None


def test_a_title_above_the_table_is_skipped(fillrank, write_wide, asked):
    path = write_wide()
    path.write_text("Spring 2024\n\n" + path.read_text())
    ran = fillrank("report", path, *QUICK, "--hold-out", "0")
    assert ran.code == 0, ran.err
    assert "skipped: a title, 'Spring 2024'" in ran.err


def test_report_of_a_model(fillrank, keep, write_wide, asked):
    keep(write_wide(), "my model.fillrank")
    assert fillrank("report", "my model.fillrank").code == 0
    ((model, test, title, _),) = asked
    assert (model.rank_, test, title) == (1, None, "my model")


def test_the_report_has_the_command_and_what_it_said(fillrank, keep, write_wide, asked, interfaces):
    path = write_wide()
    assert fillrank("report", path, *QUICK, "--hold-out", "0", "-o", "a b.html", "-q").code == 0
    (interface,) = interfaces
    assert interface.command == (
        f"fillrank report {path} --sweeps 30 --max-rank 2 --hold-out 0 -o 'a b.html' -q"
    )
    assert interface.to_hold_out == f"fillrank report {path} --hold-out 0.1"
    assert interface.notes[0].startswith(f"Read {path}: ")
    assert interface.setting(Setting("n_sweeps", 60)) == "--sweeps 60"
    assert interface.note("x: set missing_values=[-9].") == "x: add --na -9."
    keep(path)
    assert fillrank("report", "model.fillrank").code == 0
    assert interfaces[1].command == "fillrank report model.fillrank"
    assert interfaces[1].notes == ()


def test_a_report_replaces_an_earlier_one_but_no_other_file(fillrank, keep, write_wide, tmp_path):
    keep(write_wide())
    assert fillrank("report", "model.fillrank").code == 0
    page = tmp_path / "model-report.html"
    assert page.read_text(encoding="utf-8").startswith("<!")
    assert fillrank("report", "model.fillrank").code == 0
    page.write_text("<!DOCTYPE html>\nmy notes")
    assert_refused(fillrank("report", "model.fillrank"), "already exists", "--force")
    assert_refused(fillrank("report", "none.fillrank", "--force"), "none.fillrank")


def test_complete_writes_a_report(fillrank, write_wide, tmp_path, asked, monkeypatch):
    monkeypatch.setattr("fillrank.cli.complete._save_plot", lambda ax, path: path.touch())
    assert fillrank("complete", write_wide(), *QUICK).code == 0
    assert (tmp_path / "table-filled" / "table-report.html").exists()
    ((model, test, _, tested),) = asked
    assert len(model.observations_) == len(test) + len(tested.observations_)


def test_titles_of_a_model_and_of_a_table(fillrank, keep, write_long, monkeypatch, tmp_path):
    given = []

    def report(model, path, *_, row_titles, column_titles, **__):
        given.append((row_titles, column_titles))
        path.touch()

    monkeypatch.setattr("fillrank.report.html.write_report", report)
    table = write_long()
    keep(table)
    (tmp_path / "films.csv").write_text("id,title\ni0,Heat\ni1,Antz\n")
    (tmp_path / "people.csv").write_text("id,name\nu0,Ana\n")
    titles = ("--column-titles", "films.csv", "--row-titles", "people.csv")
    ran = fillrank("report", "model.fillrank", *titles)
    assert ran.code == 0, ran.err
    assert "people.csv has titles of 1 of 14 rows. films.csv has titles of 2 of 8" in ran.err
    ran = fillrank("report", table, *QUICK, "--hold-out", "0", *titles)
    assert ran.code == 0, ran.err
    assert given == 2 * [({"u0": "Ana"}, {"i0": "Heat", "i1": "Antz"})]
    ran = fillrank("report", table, "--column-titles", "people.csv", "-o", "b.html")
    assert_refused(ran, "people.csv: the file has none of the labels")
    assert_refused(fillrank("report", table, *titles, "-o", "people.csv"), "replace the input")


def test_a_run_that_has_not_converged_is_noted(fillrank, write_wide, asked):
    ran = fillrank("report", write_wide(), "--sweeps", "4", "--hold-out", "0")
    assert ran.code == 0, ran.err
    assert "Note: The run has not converged: " in ran.err
