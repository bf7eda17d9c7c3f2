"""Compiled kernels: kept in the user's cache folder, found again, and never those of other sources."""

import ast
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numba
import pytest
from numba.core.dispatcher import Dispatcher

from fillrank.runtime import cache_folder, kernel_cache
from fillrank.runtime.kernel_cache import PACKAGE, fingerprint, remove_unused, source_files
from helpers.processes import SLOW_LIMIT

HERE = Path(__file__).parent
METHODS = ("GASR", "GASR as published", "GASR float64", "BPMF", "SoftImpute", "SoftImputeALS")
METHODS += ("HASI", "RelaxedSpectral", "M3F", "IPM3F", "IPM3F gibbs")
DAY = 24 * 3600
NUMBAS = r"from numba import|numba\.(njit|jit)\("


def python(*arguments, **environment):
    """The lines that a fresh process prints, with this environment and none of numba's settings."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    paths = os.pathsep.join((str(HERE.parent), os.environ.get("PYTHONPATH", "")))
    ran = subprocess.run(
        [sys.executable, *arguments],
        env=outer | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SLOW_LIMIT,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def what_is_compiled(lines):
    """What ``every_answer`` says of kernels at first, and the names of what it compiles."""
    first, names, files = lines
    assert set(map(Path, files.split())) <= set(
        source_files()
    )  # of the named tuples that kernels take
    return first, names.split()


def compiled(work, method, cache):
    """The names of what a fresh process compiles."""
    script = str(HERE.parent / "helpers" / "every_answer.py")
    return what_is_compiled(python(script, work, method, XDG_CACHE_HOME=str(cache)))[1]


def where_kernels_are(**environment):
    """The folder of a kernel of ours, in a fresh process."""
    code = (
        "from fillrank.kernels.gaussian_rows import gaussian_rows as k; print(k.stats.cache_path)"
    )
    (path,) = python("-c", code, **environment)
    return Path(path)


def folders_of_kernels():
    """The folders of all functions of ours that are kept."""
    modules = pkgutil.walk_packages([str(PACKAGE)], "fillrank.")
    values = [vars(importlib.import_module(module.name)).values() for module in modules]
    kernels = [value for value in chain(*values) if isinstance(value, Dispatcher)]
    return {kernel.stats.cache_path for kernel in kernels} - {None}


# A second process


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_second_process_compiles_nothing_for_any_method(method, tmp_path):
    assert compiled("everything", method, tmp_path)
    assert compiled("everything", method, tmp_path) == []


# Sums over rows and over factors that are long enough for their order to show.
_BITS = """
import sys, warnings
from hashlib import sha256
from helpers.fitted_models import cells_of, fit
warnings.simplefilter("ignore")
X = cells_of(sys.argv[1], 150, 100)
model = fit(sys.argv[1], X, max_rank=10)
print(sha256(model.predict_block(range(150), range(100)).tobytes()).hexdigest())
print(sha256(model.transform(X[:20]).tobytes()).hexdigest())
"""


# The same, with what ``every_answer`` says.
_ANSWERS_AND_BITS = (
    """
import sys
from helpers import every_answer
every_answer.main("fit_and_predict", sys.argv[1])
"""
    + _BITS
)


def twice(code, method, cache):
    """The lines of the process that compiles, and of one that finds compiled kernels."""
    return [python("-c", code, method, XDG_CACHE_HOME=str(cache)) for _ in ("compiles", "loads")]


def test_a_second_process_compiles_nothing_and_has_the_same_bits(tmp_path):
    """For the method that compiles fastest; slow tests have all methods."""
    (*answers, values, rows), (*again, values_again, rows_again) = twice(
        _ANSWERS_AND_BITS, "GASR as published", tmp_path
    )
    first, names = what_is_compiled(answers)
    assert first == "to compile"
    assert "ball_rows" in names
    assert what_is_compiled(again) == ("compiled", [])
    assert (values, rows) == (values_again, rows_again)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_compiled_kernels_have_the_same_bits_whatever_the_method(method, tmp_path):
    first, second = twice(_BITS, method, tmp_path)
    assert first == second


# The place


def test_every_cached_kernel_is_in_the_folder_of_its_sources(tmp_path):
    code = "from test_kernel_cache import folders_of_kernels as f; print(*f(), sep='\\n')"
    places = os.pathsep.join([str(HERE), *sys.path])
    paths = python("-c", code, XDG_CACHE_HOME=str(tmp_path), PYTHONPATH=places)
    folder = tmp_path / "fillrank" / f"kernels-{fingerprint(source_files())}"
    assert folder / "kernels" in map(Path, paths)
    assert {Path(path).parent for path in paths} == {folder}


def test_the_users_cache_folder(monkeypatch, tmp_path):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder.cache_folder() == tmp_path / ".cache" / "fillrank"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder.cache_folder() == tmp_path / "Library" / "Caches" / "fillrank"
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder.cache_folder() == tmp_path / "local" / "fillrank"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "named"))
    assert cache_folder.cache_folder() == tmp_path / "named" / "fillrank"


def test_the_setting_of_numba_takes_precedence(tmp_path):
    mine, numbas = tmp_path / "mine", tmp_path / "numbas"
    path = where_kernels_are(XDG_CACHE_HOME=str(mine), NUMBA_CACHE_DIR=str(numbas))
    assert path.parent == numbas
    assert not mine.exists()


def test_a_folder_that_cannot_be_written_leaves_kernels_to_numba(tmp_path):
    (tmp_path / "file").touch()
    path = where_kernels_are(XDG_CACHE_HOME=str(tmp_path / "file"))
    assert path == PACKAGE / "kernels" / "__pycache__"


def test_a_full_disk_leaves_kernels_to_numba(tmp_path):
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "from fillrank.kernels.gaussian_rows import gaussian_rows as k; print(k.stats.cache_path)"
    )
    (path,) = python("-B", "-c", code, XDG_CACHE_HOME=str(tmp_path))
    assert Path(path) == PACKAGE / "kernels" / "__pycache__"


def test_functions_of_other_packages_are_cached_by_numba(tmp_path):
    module = tmp_path / "theirs.py"
    module.write_text("from numba import njit\n\n\n@njit(cache=True)\ndef one():\n    return 1\n")
    code = "import fillrank.kernels; from theirs import one; one(); print(one.stats.cache_path)"
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    (path,) = python("-c", code, XDG_CACHE_HOME=str(tmp_path / "cache"), PYTHONPATH=paths)
    assert Path(path) == tmp_path / "__pycache__"
    assert not list((tmp_path / "cache").rglob("theirs*"))


def test_an_option_of_numba_is_passed_on():
    @kernel_cache.njit(nogil=True, fastmath={"reassoc"})
    def one():
        return 1

    assert one() == 1
    assert one.targetoptions["nogil"]
    assert one.targetoptions["fastmath"] == {"reassoc"}
    assert one.stats.cache_path is None


# The hash


@pytest.fixture
def copies(tmp_path):
    """A copy of the source files."""
    copied = []
    for file in source_files():
        copy = tmp_path / file.relative_to(PACKAGE)
        copy.parent.mkdir(exist_ok=True)
        copied.append(Path(shutil.copy(file, copy)))
    return copied


def test_the_same_contents_have_the_same_hash_wherever_and_whenever(copies):
    for copy in copies:
        os.utime(copy, (0, 0))
    assert fingerprint(copies) == fingerprint(source_files())


@pytest.mark.parametrize("called", ["draws/streams.py", "kernels/factors.py"])
def test_a_change_in_what_a_kernel_calls_gives_another_hash(copies, called):
    (file,) = [copy for copy in copies if str(copy).endswith(called)]
    file.write_text(file.read_text() + "\n")
    assert fingerprint(copies) != fingerprint(source_files())


def test_a_renamed_file_gives_another_hash(copies):
    copies[0] = copies[0].rename(copies[0].with_name("another.py"))
    assert fingerprint(copies) != fingerprint(source_files())


@pytest.mark.parametrize("who", ["fillrank", "numba", "python"])
def test_another_version_gives_another_hash(monkeypatch, who):
    before = fingerprint(source_files())
    if who == "fillrank":
        monkeypatch.setattr(kernel_cache, "__version__", "0.0.0")
    elif who == "numba":
        monkeypatch.setattr(numba, "__version__", "0.0.0")
    else:
        monkeypatch.setattr(kernel_cache.platform, "python_version", lambda: "0.0.0")
    assert fingerprint(source_files()) != before


def test_every_file_with_compiled_functions_is_in_the_hash():
    users = {file for file in PACKAGE.rglob("*.py") if "import njit" in file.read_text()}
    assert PACKAGE / "kernels" / "gaussian_rows.py" in users
    assert users <= set(source_files())


def test_every_compiled_function_has_the_cache_that_cannot_fail():
    others = {file for file in PACKAGE.rglob("*.py") if re.search(NUMBAS, file.read_text())}
    assert others == {Path(kernel_cache.__file__)}


def imported(file):
    """What a file imports from modules of ours: the module, a name in it, its value."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("fillrank"):
            module = importlib.import_module(node.module)
            yield from ((module, alias.name, getattr(module, alias.name)) for alias in node.names)


def test_constants_in_compiled_code_are_from_files_in_the_hash():
    """A kernel has frozen the constants that its module imports, and the functions that it calls."""
    hashed = source_files()
    elsewhere = {
        name: value
        for file in hashed
        for module, name, value in imported(file)
        if Path(module.__file__) not in hashed
    }
    for name, value in elsewhere.items():
        assert inspect.isfunction(value) or inspect.isclass(value), name


# Old folders


def test_folders_unused_for_a_month_are_removed(tmp_path):
    ages = {"kernels-new": 0, "kernels-29": 29 * DAY, "kernels-31": 31 * DAY, "models": 99 * DAY}
    for name, age in ages.items():
        (tmp_path / name / "kernels").mkdir(parents=True)
        (tmp_path / name / "kernels" / "f.nbi").touch()
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    remove_unused(tmp_path, now=1e9)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "kernels-29",
        "kernels-new",
        "models",
    ]


def test_folders_that_cannot_be_removed_are_ignored(tmp_path, monkeypatch):
    for name in ("kernels-a", "kernels-b"):
        (tmp_path / name).mkdir()
    rename = Path.rename

    def taken_by_another(self, target):
        if self.name == "kernels-a":
            raise FileNotFoundError
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", taken_by_another)
    remove_unused(tmp_path, now=(tmp_path / "kernels-a").stat().st_mtime + 31 * DAY)
    assert [file.name for file in tmp_path.iterdir()] == ["kernels-a"]


def test_a_process_marks_its_folder_as_used(tmp_path):
    folder = where_kernels_are(XDG_CACHE_HOME=str(tmp_path)).parent
    os.utime(folder, (0, 0))
    assert where_kernels_are(XDG_CACHE_HOME=str(tmp_path)).parent == folder
    assert folder.stat().st_mtime > DAY
