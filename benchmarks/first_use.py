"""What a newcomer waits for: the import, and the first fit with nothing compiled yet.

python benchmarks/first_use.py
"""

import os
import subprocess
import sys
import tempfile

IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
FIT = """
import time, warnings
import fillrank as fr
warnings.simplefilter("ignore")
data, _ = fr.synthetic(500, 500, 5, 1.0, 0.8, random_state=0)
fr.GASR
for _ in range(2):
    t = time.perf_counter()
    fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
    print(time.perf_counter() - t)
"""


def seconds(code, cache):
    """What a fresh process prints, with ``cache`` as the user's cache folder."""
    environment = os.environ | {"XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": ""}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return [float(line) for line in run.stdout.split()]


def main():
    with tempfile.TemporaryDirectory() as cache:
        for module in ("fillrank", "fillrank.estimators.gasr", "numba, sklearn.base"):
            best = min(seconds(IMPORT.format(module), cache)[0] for _ in range(3))
            print(f"import {module:<28} {best:5.2f} s")
        first, second = seconds(FIT, cache)
        again, _ = seconds(FIT, cache)
    print(f"first fit, all kernels compiled    {first:5.1f} s")
    print(f"the same fit again                 {second:5.1f} s")
    print(f"first fit of a later process       {again:5.1f} s")


if __name__ == "__main__":
    main()
