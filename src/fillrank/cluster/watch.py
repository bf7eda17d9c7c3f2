"""Work handed to a cluster: what is lost with a worker is done again, and what hangs is named."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, TypeVar

from fillrank.errors import ClusterError, Setting, Text

_T = TypeVar("_T")

# Seconds without a sign of life after which a worker, or the scheduler, is given up; and between looks.
PATIENCE = 45.0
_BETWEEN_LOOKS = 1.0
# How often one piece of work is begun again before its failure is taken as the work's own.
_MOST_ATTEMPTS = 20
REFIT: list[Text] = ["Fit again.", ("With ", Setting("checkpoint", ...), " the run resumes.")]


class Watch:
    """Waits for the workers of a Dask client, but not for ever.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any):
        self.client = client
        # By worker: when it was last heard of, and since when that is so. And since when there is none.
        self._seen: dict[str, tuple[float, float]] = {}
        self._alone_since: float | None = None

    def workers(self) -> dict[str, dict[str, Any]]:
        """All workers by their addresses, with what the scheduler knows of them; at least one."""
        while not (found := self.workers_now()):
            self.look()
            time.sleep(_BETWEEN_LOOKS)
        return found

    def workers_now(self) -> dict[str, dict[str, Any]]:
        """All workers that the scheduler knows, as `workers`, if there are any."""
        self._check_open()
        try:
            identity = self.client.sync(
                self.client.scheduler.identity, n_workers=-1, callback_timeout=PATIENCE
            )
        except (TimeoutError, OSError) as error:
            raise _without_scheduler() from error
        return identity["workers"]

    def until_done(self, work: Callable[[], _T]) -> _T:
        """What the work comes to; begun again if a worker dies over it."""
        import distributed

        lost = (distributed.KilledWorker, CancelledError, asyncio.CancelledError, OSError)
        for _ in range(_MOST_ATTEMPTS):
            try:
                return work()
            except ClusterError:
                raise
            except lost:
                self.look()
                time.sleep(_BETWEEN_LOOKS)
        raise ClusterError(
            f"workers died {_MOST_ATTEMPTS} times during the same task",
            advice=["See their logs: often they have too little memory.", *REFIT],
        )

    def ask(self, question: Callable[[], Awaitable[_T]]) -> _T:
        """The answer to a question of the client, with looks at who must be alive in between."""
        self._check_open()

        async def answer() -> _T:
            return await question()

        pending = asyncio.run_coroutine_threadsafe(answer(), self.client.loop.asyncio_loop)
        try:
            while True:
                try:
                    return pending.result(_BETWEEN_LOOKS)
                except TimeoutError:
                    if pending.done():
                        return pending.result()
                    self.look()
        finally:
            pending.cancel()  # if it is not done, Ctrl-C has come, or an error

    def look(self) -> None:
        """Raise an error if the scheduler, a worker or all workers have been away for too long."""
        workers = self.workers_now()
        now = time.monotonic()
        seen = {}
        for name, worker in workers.items():
            last = worker["last_seen"]
            before, since = self._seen.get(name, (None, now))
            seen[name] = (last, since if last == before else now)
        self._seen = seen
        silent = [name for name, (_, since) in seen.items() if now - since > PATIENCE]
        if silent:
            raise ClusterError(
                f"the worker {silent[0]} has not responded for {PATIENCE:.0f} seconds",
                advice=["End or restart it.", *REFIT],
            )
        if any(worker["status"] == "running" for worker in workers.values()):
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since > PATIENCE:
            raise ClusterError(
                f"no worker is left, and none has connected for {PATIENCE:.0f} seconds",
                advice=["Start workers.", *REFIT],
            )

    def _check_open(self) -> None:
        if self.client.status == "closed":
            raise _without_scheduler()


@contextmanager
def large_arguments() -> Iterator[None]:
    """Tasks may have large arguments here, of which Dask would warn: none travels more than once."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
        yield


def _without_scheduler() -> ClusterError:
    return ClusterError(
        "the scheduler does not respond",
        advice=["Check that it is running and that the network works.", *REFIT],
    )
