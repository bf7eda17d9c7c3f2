"""The process that reads: for each path on standard input it prints a response, a line of JSON.

Started as ``python -m fuzz.child MODULE``. It first attempts all seeds, which must be accepted; so
compilation and imports on first use do not count as the time of an input.
"""

import importlib
import json
import os
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from fillrank.errors import FillrankError

MEMORY = 4 * 2**30  # bytes of address space


def outcome(target: Any, path: Path) -> dict[str, Any]:
    """Attempt a file and return the outcome."""
    start = time.process_time()
    message = ""
    try:
        target.attempt(path)
        result = "accepted"
    except FillrankError as error:
        result, message = "refused", f"{type(error).__name__}: {error}"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of Rust is not an Exception
        result, message = "undocumented", traceback.format_exc()
    return {"result": result, "message": message, "seconds": time.process_time() - start}


def main() -> None:
    # Libraries may print, so responses use a separate channel.
    responses = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    target = importlib.import_module(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="fillrank-seeds-") as folder:
        for number, seed in enumerate(target.seeds()):
            path = Path(folder) / f"seed{number}{target.SUFFIX}"
            path.write_bytes(seed)
            target.attempt(path)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    print(json.dumps({"result": "ready"}), file=responses, flush=True)
    for line in sys.stdin:
        print(json.dumps(outcome(target, Path(line[:-1]))), file=responses, flush=True)


if __name__ == "__main__":
    main()
