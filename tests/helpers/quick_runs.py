"""Quick versions of the experiments, run without the command line."""

from pathlib import Path

from fillrank.paper.study import Request, advance, open_record, results_of


def request(output=Path("unused"), quick=True, data=None):
    return Request(quick, data, output, 1)


def run_quick(module, output):
    """(experiment, results, lines, folder) of a module's quick version."""
    experiment = module.experiment(request(output))
    folder = output / module.NAME
    folder.mkdir(parents=True)
    record = open_record(folder, experiment, fresh=False)
    for _ in advance(experiment, record):
        pass
    results = results_of(experiment, record)
    lines = experiment.present(results, folder)
    return experiment, results, lines, folder


def assert_written(experiment, folder):
    """All files exist, and images are in their format."""
    for name in experiment.files:
        content = (folder / name).read_bytes()
        assert content
        if name.endswith(".png"):
            assert content.startswith(b"\x89PNG")
        if name.endswith(".svg"):
            assert b"<svg" in content
