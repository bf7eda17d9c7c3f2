"""Where nothing can be saved: kernels are compiled in memory, and one warning says so."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fillrank.errors import OutputError
from fillrank.runtime import cache_folder
from fillrank.runtime.kernel_cache import PACKAGE

LIMIT = 240  # seconds, for what takes some: compiling on a busy machine
NO_FOLDER = "/dev/null/none"  # below a file, so that not even root can write there
TWO_FITS = """
import numpy as np
import fillrank as fr
X = np.add.outer(np.arange(12.0), np.arange(6.0))
X[0, 0] = np.nan
{before}
for method in (fr.SoftImpute, fr.SoftImputeALS):
    model = method(penalty=1.0, progress=False).fit(X)
assert np.isfinite(model.predict(0, 0)).all()
from fillrank.runtime.kernel_cache import must_compile
from fillrank.kernels.gaussian_rows import gaussian_rows
print(gaussian_rows.stats.cache_path, must_compile(gaussian_rows))
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="/dev/null, rights and limits of POSIX")


def run(arguments, before_start=None, cwd=None, sources=PACKAGE.parent, **environment):
    """Run Python with these variables, and without those that say where a cache may be."""
    paths = os.pathsep.join((str(sources), os.environ.get("PYTHONPATH", "")))
    outer = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("NUMBA_") and name not in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")
    }
    ran = subprocess.run(
        [sys.executable, *arguments],
        env=outer | {"PYTHONPATH": paths} | environment,
        preexec_fn=before_start,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert ran.returncode == 0, ran.stderr
    return ran


def two_fits(before="", **environment):
    return run(["-B", "-c", TWO_FITS.format(before=before)], **environment)


def assert_warned_once(ran, *words):
    assert ran.stderr.count("CacheWarning: compiled code is not saved, because") == 1
    for word in (*words, "XDG_CACHE_HOME"):
        assert word in ran.stderr
    assert "<string>" in ran.stderr  # the user's own line


def _copy(folder):
    shutil.copytree(PACKAGE, folder / "fillrank", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, beside which numba could write."""
    return _copy(tmp_path / "sources")


@pytest.fixture
def blocked(copied):
    """The same, but there are files where numba would have its folders."""
    folders = [copied, *(path for path in copied.rglob("*") if path.is_dir())]
    for folder in folders:
        (folder / "__pycache__").touch()
    return copied


@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_a_fit_without_a_cache_folder(blocked, name):
    ran = two_fits(sources=blocked, **{"HOME": NO_FOLDER, name: NO_FOLDER})
    assert ran.stdout == "None False\n"
    assert_warned_once(ran, "no cache folder that can be written")


def _no_right_to_override():
    """Have root obey the rights of files, as other users do."""
    prctl_capbset_drop, cap_dac_override = 24, 1
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(prctl_capbset_drop, cap_dac_override) != 0:
        raise OSError("root cannot be kept from writing here")


def test_folders_that_can_only_be_read(copied, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    folders = [home, copied, *(path for path in copied.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        ran = run(
            ["-B", "-c", TWO_FITS.format(before="")],
            before_start=_no_right_to_override,
            sources=copied,
            HOME=str(home),
        )
    except subprocess.SubprocessError:
        pytest.skip("root cannot be kept from writing here")
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert ran.stdout == "None False\n"
    assert_warned_once(ran, "no cache folder that can be written")
    assert list(home.iterdir()) == []


def _nobody():
    os.setgroups([])
    os.setgid(54321)
    os.setuid(54321)


def test_a_user_without_a_home_folder():
    """As in a container that is run by a number that no one has."""
    try:
        run(["-B", "-c", "import numba, sklearn"], before_start=_nobody)
    except (subprocess.SubprocessError, OSError, AssertionError):
        pytest.skip("only root can become another user, who must be able to read this Python")
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are for this user alone
        place = Path(folder)
        _copy(place / "sources")
        place.chmod(0o777)
        words = ["-B", "-c", TWO_FITS.format(before="")]
        ran = run(words, before_start=_nobody, cwd=place, sources=place / "sources")
        assert [path.name for path in place.iterdir()] == ["sources"]
    assert ran.stdout == "None False\n"
    assert_warned_once(ran, "no cache folder that can be written")


def test_diagnostics_need_no_home_folder(tmp_path):
    """ArviZ looks for the user's home when it is imported."""
    ran = run(
        [
            "-c",
            "import os, pwd; from pathlib import Path; pwd.getpwuid = {}.__getitem__\n"
            "from fillrank.posterior.diagnostics import diagnose\n"
            "from fillrank.posterior.to_arviz import _makers\n"
            "import numpy as np; _makers()\n"
            "probes = np.random.default_rng(0).normal(size=(2, 400, 3))\n"
            "print(diagnose({}, np.empty((2, 400, 0)), probes, 0).converged)\n"
            "print('HOME' in os.environ)",
        ],
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert ran.stdout == "True\nFalse\n"


def test_a_folder_that_is_lost_during_the_run(tmp_path):
    before = (
        "import os, shutil, fillrank.kernels.products, fillrank.estimators.soft_impute_als;"
        "root = os.environ['XDG_CACHE_HOME']; shutil.rmtree(root); open(root, 'w').close()"
    )
    ran = two_fits(before, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert ran.stdout.startswith(str(tmp_path / "cache" / "fillrank"))
    assert_warned_once(ran, "cannot be written")


def test_a_disk_that_becomes_full_during_the_run(tmp_path):
    before = (
        "import resource, fillrank.kernels.products, fillrank.estimators.soft_impute_als;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    )
    assert_warned_once(two_fits(before, XDG_CACHE_HOME=str(tmp_path)), "cannot be written")


def test_damaged_files_are_compiled_again_and_replaced(tmp_path):
    use = (
        "from fillrank.kernels.factors import _scale_blocks as kernel; import numpy as np;"
        "a = np.ones((3, 2)); kernel(a, a[0], a, 0, 1); print(sum(kernel.stats.cache_hits.values()))"
    )
    run(["-c", use], XDG_CACHE_HOME=str(tmp_path))
    for ending in ("nbi", "nbc"):
        files = list(tmp_path.rglob(f"*.{ending}"))
        assert files
        for file in files:
            file.write_bytes(file.read_bytes()[:40])
        assert run(["-c", use], XDG_CACHE_HOME=str(tmp_path)).stdout == "0\n"
    assert run(["-c", use], XDG_CACHE_HOME=str(tmp_path)).stdout == "1\n"


def test_the_command_fits_with_one_note(blocked, tmp_path):
    table = tmp_path / "table.csv"
    lines = [f"r{i},{i},{2 * i},{'' if i == 3 else 3 * i}" for i in range(8)]
    table.write_text("\n".join(["name,a,b,c", *lines]))
    words = [
        "-m",
        "fillrank",
        "fit",
        str(table),
        "--method",
        "SoftImpute",
        "-o",
        str(tmp_path / "m.fillrank"),
    ]
    ran = run(words, sources=blocked, HOME=NO_FOLDER)
    assert ran.stderr.count("Note: compiled code is not saved") == 1
    assert (tmp_path / "m.fillrank").is_file()


def test_a_user_without_a_home_folder_gets_advice(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(OutputError, match=r"no cache folder.*XDG_CACHE_HOME"):
        cache_folder.cache_folder()
