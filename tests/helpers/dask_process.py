"""Starts schedulers and workers as copies of a process that has imported all that they need.

A line of standard input asks for one, in JSON: the arguments of ``dask spec``, and a file for what the
process says. The line of standard output that answers is its process id. Imports would take each of them
some seconds.

All of them end with the process that asked for them, however that one ended: standard input is a pipe
from it.
"""

import importlib
import json
import os
import pkgutil
import signal
import sys
import threading
from contextlib import suppress

import dask.dataframe  # noqa: F401
from distributed.cli.dask_spec import main

import fillrank.cluster
import fillrank.samplers


def import_all():
    for package in (fillrank.cluster, fillrank.samplers):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in ("GASR", "load"):
        getattr(fillrank, name)


def end_with(pipe):
    os.read(pipe, 1)  # nobody writes: it ends when the other side is closed
    os._exit(1)


def become(arguments, log, pipe):
    """Be a scheduler or a worker from now on."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for source, flags, targets in (
        (os.devnull, os.O_RDONLY, (0,)),
        (log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, (1, 2)),
    ):
        file = os.open(source, flags, 0o600)
        for target in targets:
            os.dup2(file, target)
    threading.Thread(target=end_with, args=(pipe,), daemon=True).start()
    try:
        main(arguments)
    finally:
        os._exit(1)


def reap(*_):
    """Take note of those that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def serve():
    signal.signal(signal.SIGCHLD, reap)
    mine, theirs = os.pipe()
    for line in sys.stdin:
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            os.close(theirs)
            become(request["arguments"], request["log"], mine)
        print(process, flush=True)
    os.close(theirs)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


if __name__ == "__main__":
    import_all()
    serve()
