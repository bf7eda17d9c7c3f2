"""Hostile model files: inconsistent ones are refused, and accepted ones cannot cause a crash.

The author of a file can write any prediction into it. What is accepted here is no worse than that.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import FillrankError, ReadError
from fillrank.posterior import model_file, stored_table, validation
from fillrank.storage.array_file import read, write
from helpers.fitted_models import METHODS, cells_of, fit, new_rows
from helpers.forged_files import forged
from helpers.given_features import fit_given, given_for
from helpers.processes import SLOW_LIMIT
from reference.planted import plant

CASES = ("GASR", "GASR given", "GASR kinds", "SoftImpute", "M3F", "IPM3F", "IPM3F gibbs")

# Changes after which the file is still valid.
_FOR_THE_NEXT_FIT = (
    "max_rank|max_iterations|tolerance|penalty|levels|progress|random_state|n_sweeps|burn_in|"
    "n_chains|effects|centres|start|dtype|value_range|sampler|units|noise|robust|keep_empty|"
    "missingness|likelihood|thresholds|round"
)
_PLAUSIBLE = r"(all|one) (-1|0|1|huge|1e38)|backwards"
HARMLESS = re.compile(
    "|".join(
        f"({pattern})"
        for pattern in (
            r"about with more|(without )?made_by( = .*)?",
            r"without parts/settings|parts/settings = \{\}",
            rf"(without )?parts/settings/({_FOR_THE_NEXT_FIT})( = .*)?",
            r"without parts/settings/(n_threads|inference)|parts/settings/n_threads = None",
            r"parts/posterior_/(draws/0|mean)/noise/(variance|degrees) = 1e\+308",
            r"parts/posterior_/coding/scales/0/(location|bounds/0) = .*",
            r"parts/table/column_types(/0/levels/0)? = .*",
            r"posterior_/coding/limits longer along 2",
            rf"table/entries/(cells|intervals) ({_PLAUSIBLE}|longer along 0|one inf)",
            r"parts/(penalty|noise_variance|violation)_ = 1e\+308|parts/violation_ = (-0\.5|.*float.*)",
            r"parts/(rank_ = 0|(rank|n_sweeps)_ = 10+|stop_reason_ = '.*')",
            r"parts/((interrupted|reached_limit)_ = True|converged_ = (True|False))",
            r"parts/path_( = \[\]| twice)|without parts/path_(/0)?|parts/path_/0/penalty = 1e\+308",
            r"parts/path_/0/(beta|rank|training_error|validation_error|n_iterations) = .*",
            r"without parts/(penalty|noise_variance|singular_values|violation|feature_names_in)_",
            r"without parts/(n_sweeps|interrupted|reached_limit|converged)_",
            r"parts/table/(row|column|value)_field = .*|parts/table/backend = None",
            r"parts/table/rows_in_index = .*|parts/table/entries = None",
            rf"(posterior_/.*/|sticks_|table/entries/values|traces_/(spectra|probes)).*( {_PLAUSIBLE})",
            rf"(traces_/)?history_?/.* ({_PLAUSIBLE}|(shorter|longer) along 0|as a (row|column))",
            rf"singular_values_ ({_PLAUSIBLE}|longer along 0)",
            r"(row|column)_noise_ ((all|one) (0|1|huge|1e38)|backwards|as float(32|64))",
            r"without parts/(row|column)_noise_",
            r"(without )?parts/(units|noise|notes)_(/\d+)?( = .*| twice)?",
            r"(singular_values_|posterior_/.*|(traces_/)?history_?/.*|traces_/.*) as float(32|64)",
            r"traces_/probe_(rows|columns) (backwards|(all|one) [01])|traces_/spectra longer along [12]",
        )
    )
)


def frame_of(name, n_rows=20, seed=0):
    cells = cells_of(name, n_rows, seed=seed)
    rows = pd.Index([f"r{i}" for i in range(n_rows)], name="who")
    return pd.DataFrame(cells, rows, [f"c{j}" for j in range(12)])


def mixed_frame():
    """A table with ordered levels, a category, counts and limits."""
    table = frame_of("GASR")
    table["c0"] = pd.cut(table["c0"], 4, labels=["no", "little", "more", "much"])
    table["c1"] = np.array(["a", "b", "c"], dtype=object)[np.arange(len(table)) % 3]
    sizes = np.linspace(1.0, 3.0, len(table))
    table["c2"] = [f"<{x:.2f}" if i % 3 else f"{x + 1:.2f}" for i, x in enumerate(sizes)]
    return table


def content_of(name, folder):
    table = frame_of("GASR" if name == "GASR kinds" else name)
    if name == "GASR kinds":
        model = METHODS["GASR"]().set_params(n_sweeps=10, kinds={"c0": "ordered"})
        model.fit(mixed_frame())
    elif name == "GASR given":
        model = METHODS["GASR"]().set_params(n_sweeps=8)
        fit_given(model, table, given_for(table.shape))
    else:
        model = fit(name, table, **({"n_sweeps": 8} if name == "GASR" else {}))
    model.save(folder / "model.fillrank", with_data=True)
    return read(folder / "model.fillrank", "model")


@pytest.fixture(scope="module", params=CASES)
def content(request, tmp_path_factory):
    return content_of(request.param, tmp_path_factory.mktemp("models"))


def loaded(content, monkeypatch):
    """Return the model of a file with this content, or None if it is refused."""
    monkeypatch.setattr(model_file, "read", lambda path, kind: content)
    try:
        return fr.load("model.fillrank")
    except ReadError:
        return None


def wrongly_accepted(content, monkeypatch, only=""):
    """Yield changes to a file that are accepted but may be harmful."""
    for what, other in forged(content, only):
        if loaded(other, monkeypatch) is not None and not HARMLESS.fullmatch(what):
            yield what


def test_inconsistent_files_are_refused(content, monkeypatch):
    assert loaded(content, monkeypatch) is not None
    assert sum(1 for _ in forged(content)) > 700
    assert [*wrongly_accepted(content, monkeypatch)] == []


def changed(part, value):
    """Return a function that writes another value into the JSON document."""

    def forge(content):
        *path, last = part.split("/")
        place = content.about
        for key in path:
            place = place[key]
        place[last] = value

    return forge


def replaced(name, make):
    """Return a function that replaces an array by one made from it."""

    def forge(content):
        content.arrays[name] = make(content.arrays[name])

    return forge


def as_labels(*labels):
    text = ",".join(labels).encode()
    return lambda array: np.frombuffer(b"[" + text + b"]", np.uint8)


FORGERIES = {
    "another method": (changed("method", "BPMF"), "settings that are not known"),
    "no method": (changed("method", "__class__"), "its method must be one of"),
    "a module": (changed("method", "os"), "its method must be one of"),
    "an unknown part": (changed("parts/__class__", 1), "no such parts"),
    "an unknown setting": (changed("parts/settings/__dict__", 1), "settings that are not known"),
    "a folder to write to": (changed("parts/settings/checkpoint", "/tmp"), "checkpoint"),
    "a billion threads": (changed("parts/settings/n_threads", 10**9), "from 1 to 1024"),
    "an unknown library": (changed("parts/table/backend", "antigravity"), "backend must be"),
    "a rank as text": (changed("parts/rank_", "three"), "must be an integer"),
    "a cell outside": (
        replaced("table/entries/row_index", lambda i: np.append(i[:-1], np.int32(20))),
        "its entries are not those of a table",
    ),
    "a negative cell": (
        replaced("table/entries/column_index", lambda j: np.append(np.int32(-1), j[1:])),
        "its entries are not those of a table",
    ),
    "entries in another order": (
        replaced("table/entries/row_index", lambda i: i[::-1].copy()),
        "its entries are not those of a table",
    ),
    "a cell twice": (
        replaced("table/entries/column_index", lambda j: np.append(j[:-1], j[-2])),
        "its entries are not those of a table",
    ),
    "repeated labels": (
        replaced("table/row_labels", as_labels(*['"r"'] * 20)),
        "used more than once",
    ),
    "missing labels": (
        replaced("table/row_labels", as_labels('{"float":"nan"}', *(f"{i}" for i in range(19)))),
        "a missing one",
    ),
    "no labels": (replaced("table/row_labels", as_labels()), "no rows, or no columns"),
    "fewer features": (
        replaced("feature_names_in_", as_labels('"c0"')),
        "its features are not the columns",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("forge", "message"), FORGERIES.values(), ids=FORGERIES)
def test_forgeries_are_refused_with_a_reason(forge, message, tmp_path):
    content = content_of("GASR", tmp_path)
    forge(content)
    write(tmp_path / "forged.fillrank", content)
    with pytest.raises(ReadError, match=f"forged.fillrank cannot be loaded: .*{message}"):
        fr.load(tmp_path / "forged.fillrank")


@pytest.mark.parametrize(
    ("where", "module", "name", "old", "new"),
    [
        ("noise_variance", validation, "_is_amount", "number >= 0", "number > -2"),
        ("left", validation, "_check_draw", "left.shape == (shape[0], right.shape[1])", "True"),
        ("left", validation, "_is_numeric", "np.isfinite(array).all()", "True"),
        ("entries", stored_table, "_check_entries", "(k < n).all()", "True"),
        ("entries", stored_table, "_check_entries", "np.isfinite(values).all()", "True"),
        ("n_threads", model_file, "_checked_settings", "1, _MOST_THREADS)", "1)"),
    ],
)
def test_planted_bugs_accept_forgeries(where, module, name, old, new, tmp_path, monkeypatch):
    content = content_of("SoftImpute", tmp_path)
    assert not any(wrongly_accepted(content, monkeypatch, where))
    plant(monkeypatch, module, name, old, new)
    assert any(wrongly_accepted(content, monkeypatch, where))


# Accepted models support every request


def requests(model, name):
    data = model.observations_
    rows, columns = data.row_labels, data.column_labels
    cells = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
    yield lambda: model.predict(*cells)
    yield lambda: model.predict_interval(*cells, kind="signal")
    yield lambda: model.predict_interval(*cells, kind="observation")
    yield lambda: model.predict_block(rows, columns)
    yield lambda: [*model.predict_missing()]
    yield lambda: model.recommend(n=3)
    yield lambda: model.recommend(n=3, by="cautious")
    yield lambda: model.recommend(n=3, by="curious", leave_out=None)
    yield lambda: model.sample_completions(1)
    yield lambda: model.fold_in(new_rows(name))
    yield lambda: model.fold_in(cells_of(name, n_columns=2), axis="columns")
    yield lambda: model.transform(frame_of(name, 3, seed=1))
    if hasattr(model, "diagnostics"):
        yield lambda: model.diagnostics()
    yield lambda: fr.plot.spectrum(model)
    yield lambda: fr.plot.trace(model)


def problems(name, folder, only=""):
    """Yield the errors, other than refusals, of models with forged arrays."""
    content = content_of(name, Path(folder))
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for what, other in forged(content._replace(about={}), only):
            try:
                model = loaded(other._replace(about=content.about), patch)
            except Exception as error:
                yield f"{what}: {error!r}"
                continue
            for request in requests(model, name) if model else ():
                try:
                    request()
                except FillrankError:  # not supported
                    pass
                except Exception as error:
                    yield f"{what}: {error!r}"


def run_with_bounds_checked(code, tmp_path):
    """Return the output of a process in which numba checks every index."""
    here = Path(__file__).parent
    start = f"import sys, warnings; sys.path[:0] = {[str(here), str(here.parent)]}\n"
    start += "warnings.simplefilter('ignore')\n"
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(code)],
        env=env, capture_output=True, text=True, check=False, timeout=SLOW_LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_kernels_never_index_out_of_bounds(name, tmp_path):
    code = f"""
        from test_hostile_models import problems
        print(*problems({name!r}, {str(tmp_path)!r}), sep="\\n")
    """
    assert run_with_bounds_checked(code, tmp_path) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["GASR", "M3F"])
def test_without_validation_they_would(name, tmp_path):
    code = f"""
        from fillrank.posterior import validation
        validation._require = lambda condition, rule: None
        from test_hostile_models import problems
        found = problems({name!r}, {str(tmp_path)!r}, only="left")
        print(next(problem for problem in found if "out of bounds" in problem))
    """
    assert "IndexError" in run_with_bounds_checked(code, tmp_path)
