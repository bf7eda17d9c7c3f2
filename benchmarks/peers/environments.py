"""One environment for each peer, made where it is missing: peers need other versions than fillrank.

    python benchmarks/peers/environments.py [--environments build/peers]

R and its package softImpute belong to the system: they are used where they are there.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

DEFAULT_FOLDER = Path("build/peers")
# What each needs, with what it forgets to ask for.
REQUIREMENTS = {
    "smurff": ("smurff==1.1.*", "h5sparse", "six"),
    "myfm": ("myfm==0.4.0",),
    "cmfrec": ("cmfrec==3.5.1.post14", "threadpoolctl"),
    "surprise": ("scikit-surprise==1.1.5", "numpy<2"),
}
NOT_INSTALLED = "could not be installed"
LIMIT = 1800  # seconds for one command
NO_R = "R is not present"
NO_SOFT_IMPUTE = "R's package softImpute is not present"
_HAS_SOFT_IMPUTE = 'quit(status = !requireNamespace("softImpute", quietly = TRUE))'


class Environment(NamedTuple):
    """The command that runs a peer's scripts; or why there is none, in words."""

    command: str | None
    missing: str = ""


def environment(peer, folder):
    """The environment of a peer, made now if it was not there."""
    if peer == "fillrank":
        return Environment(sys.executable)
    return _of_r() if peer == "softimpute" else _of_python(peer, folder / peer)


def _of_r():
    command = shutil.which("Rscript")
    if command is None:
        return Environment(None, NO_R)
    ask = [command, "-e", _HAS_SOFT_IMPUTE]
    present = subprocess.run(ask, capture_output=True, timeout=LIMIT).returncode == 0
    return Environment(command) if present else Environment(None, NO_SOFT_IMPUTE)


def _of_python(peer, folder):
    command, installed = folder / "bin" / "python", folder / "installed"
    wanted = "\n".join(REQUIREMENTS[peer])
    if installed.exists() and installed.read_text("utf-8") == wanted:
        return Environment(str(command))
    print(f"making an environment for {peer} ...", flush=True)
    subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=LIMIT
    )
    log = folder / "install.log"
    with log.open("w", encoding="utf-8") as said:
        install = [str(command), "-m", "pip", "install", *REQUIREMENTS[peer]]
        code = subprocess.run(
            install, stdout=said, stderr=subprocess.STDOUT, timeout=LIMIT
        ).returncode
    if code != 0:
        print(f"{peer} {NOT_INSTALLED}: see {log}", file=sys.stderr)
        return Environment(None, NOT_INSTALLED)
    installed.write_text(wanted, "utf-8")
    return Environment(str(command))


def main():
    """Make all of them, and say which are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, default=DEFAULT_FOLDER)
    folder = parser.parse_args().environments
    for peer in (*REQUIREMENTS, "softimpute"):
        print(f"{peer}: {environment(peer, folder).missing or 'ready'}", flush=True)


if __name__ == "__main__":
    main()
