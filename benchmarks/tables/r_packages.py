"""R and its packages, which belong to the system: from Debian's, where they are not there.

mice needs nnet for categories, and does not install it.
"""

import os
import shutil
import subprocess

LIMIT = 600
# Packages of R that Debian has, by their name in R; softImpute and missMDA are not among them.
_DEBIAN = {"mice": "r-cran-mice", "nnet": "r-cran-nnet"}


def why_missing(package):
    """Why R's package cannot be used here, after an attempt to install it; empty if it can."""
    if _is_present(package):
        return ""
    if package in _DEBIAN and _may_install():
        print(f"installing {_DEBIAN[package]} ...", flush=True)
        _install("r-base-core", _DEBIAN[package])
        if _is_present(package):
            return ""
    if shutil.which("Rscript") is None:
        return "R is not present"
    return f"R's package {package} is not present"


def _is_present(package):
    command = shutil.which("Rscript")
    if command is None:
        return False
    ask = f'quit(status = !requireNamespace("{package}", quietly = TRUE))'
    return subprocess.run([command, "-e", ask], capture_output=True, timeout=LIMIT).returncode == 0


def _may_install():
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(*packages):
    for command in (
        ["update", "-qq"],
        ["install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        # Another installation may be under way.
        command = ["apt-get", "-o", f"DPkg::Lock::Timeout={LIMIT}", *command]
        subprocess.run(command, capture_output=True, timeout=2 * LIMIT)
