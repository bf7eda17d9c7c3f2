import http.client
import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
import typer
from typer.testing import CliRunner

from fillrank.cli import explore as verb
from fillrank.errors import InputError, ReadError
from helpers.explorer_models import survey
from helpers.processes import LIMIT, end_when_late

PROGRAM = "import typer; from fillrank.cli.explore import explore; typer.run(explore)"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "[red]survey.fillrank"
    survey().save(path, with_data=True)
    return path


def run(*arguments):
    app = typer.Typer()
    app.command()(verb.explore)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_serves_until_it_is_interrupted(model):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(model), "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    end_when_late(process)
    try:
        url = urlsplit(process.stdout.readline().strip())
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=LIMIT)
        connection.request("GET", f"{url.path}?{url.query}")
        assert connection.getresponse().status == 200
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "GASR, 80 rows x 16 columns" in said
    assert "[red]survey" in said
    assert said.rstrip().endswith("The explorer has ended.")
    assert "Traceback" not in said


def test_titles_of_rows_and_columns(model, monkeypatch, tmp_path):
    views = []

    def interrupted(self):
        views.append(self.view)
        raise KeyboardInterrupt

    monkeypatch.setattr("fillrank.explore.server.Explorer.serve_forever", interrupted)
    (tmp_path / "foods.csv").write_text("id,title\ntea,Green tea\n")
    (tmp_path / "people.csv").write_text("id,title\nperson 3,Ana\n")
    result = run(
        model, "--no-browser", "--row-titles", tmp_path / "people.csv",
        "--column-titles", tmp_path / "foods.csv",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "foods.csv has titles of 1 of 16 columns." in result.output
    (view,) = views
    assert [each["name"] for each in view.search("columns", "green")["matches"]] == ["tea"]
    assert [each["name"] for each in view.search("rows", "ana")["matches"]] == ["person 3"]
    refused = run(model, "--column-titles", tmp_path / "people.csv").exception
    assert isinstance(refused, InputError)


@pytest.mark.parametrize(("option", "opened"), [("--browser", 1), ("--no-browser", 0)])
def test_opens_the_browser_unless_told_not_to(model, monkeypatch, option, opened):
    calls = []

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(verb.webbrowser, "open", calls.append)
    monkeypatch.setattr("fillrank.explore.server.Explorer.serve_forever", interrupted)
    result = run(model, option)
    assert result.exit_code == 0
    assert len(calls) == opened
    assert all(call in result.output for call in calls)


def test_files_that_are_not_models_are_rejected(tmp_path):
    assert isinstance(run(tmp_path / "not-there.fillrank").exception, ReadError)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert isinstance(run(tmp_path / "table.csv").exception, ReadError)


def test_a_port_that_is_not_available(model):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        result = run(model, "--no-browser", "--port", listener.getsockname()[1])
    assert isinstance(result.exception, InputError)
    assert run(model, "--port", 99_999).exit_code == 2
