"""Quick versions of the experiments, run without the command line."""

from pathlib import Path

from fillrank.paper.record import open_record
from fillrank.paper.study import Request, advance, results_of


def request(output=Path("unused"), quick=True, data=None):
    return Request(quick, data, output, 1)


def run_quick(module, output):
    """(experiment, results, words, folder) of a module's quick version."""
    experiment = module.experiment(request(output))
    folder = output / module.NAME
    folder.mkdir(parents=True)
    kept = open_record(folder, experiment, fresh=False)
    for _ in advance(experiment, kept):
        pass
    results = results_of(experiment, kept)
    words = experiment.present(results, folder)
    return experiment, results, words, folder


def assert_written(experiment, folder):
    """All files are there, and pictures are pictures."""
    for name in experiment.files:
        content = (folder / name).read_bytes()
        assert content
        if name.endswith(".png"):
            assert content.startswith(b"\x89PNG")
        if name.endswith(".svg"):
            assert b"<svg" in content
