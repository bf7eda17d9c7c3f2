"""Work on a Dask cluster: retried if workers are lost, with an error if the cluster does not respond."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from fillrank.errors import ClusterError, InputError, NotSupportedError, Setting, Text

if TYPE_CHECKING:
    from distributed import Client, Future

_T = TypeVar("_T")

# Seconds after which a worker or the scheduler that does not respond is an error; and between checks.
TIMEOUT = 45.0
_CHECK_INTERVAL = 1.0
# Attempts at one piece of work before its failure is an error.
_MAX_ATTEMPTS = 20
REFIT: list[Text] = ["Fit again.", ("With ", Setting("checkpoint", ...), " the run resumes.")]


def check_client(client: Any) -> None:
    """Raise InputError if ``client`` is not a client of a Dask cluster."""
    try:
        import distributed
    except ImportError as error:
        raise NotSupportedError(
            'a cluster needs Dask, which is not installed. Run: pip install "fillrank[dask]"'
        ) from error
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise InputError(
            "client must be a dask.distributed.Client that is not asynchronous, as in "
            f'client = Client("tcp://scheduler:8786"); got {client!r}.'
        )


class Monitor:
    """Waits for work on a cluster, and checks meanwhile that its scheduler and workers respond.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Client):
        self.client = client
        # For each worker, its last heartbeat and when that was noticed. And since when none runs.
        self._heartbeats: dict[str, tuple[float, float]] = {}
        self._no_worker_since: float | None = None

    def wait_for_workers(self) -> dict[str, dict[str, Any]]:
        """Wait until there is a worker; return all of them, as `get_workers` does."""
        while not (workers := self.get_workers()):
            self.check()
            time.sleep(_CHECK_INTERVAL)
        return workers

    def get_workers(self) -> dict[str, dict[str, Any]]:
        """What the scheduler knows about each worker, by address."""
        self._check_open()
        try:
            identity = self.client.sync(
                self.client.scheduler.identity, n_workers=-1, callback_timeout=TIMEOUT
            )
        except (TimeoutError, OSError) as error:
            raise _scheduler_error() from error
        return identity["workers"]

    def retry(self, work: Callable[[], _T]) -> _T:
        """Return ``work()``, called again if a worker is lost meanwhile."""
        import distributed

        lost = (distributed.KilledWorker, CancelledError, asyncio.CancelledError, OSError)
        for _ in range(_MAX_ATTEMPTS):
            try:
                return work()
            except ClusterError:
                raise
            except lost:
                self.check()
                time.sleep(_CHECK_INTERVAL)
        raise ClusterError(
            f"workers died {_MAX_ATTEMPTS} times during the same task",
            advice=["See their logs: often they have too little memory.", *REFIT],
        )

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """The results of tasks. Tasks that failed because their workers died are retried."""
        import distributed

        def work() -> list[Any]:
            killed = [
                future
                for future in futures
                if future.status == "error"
                and isinstance(future.exception(), distributed.KilledWorker)
            ]
            if killed:
                self.client.retry(killed)
            return self.wait_for(lambda: self.client.gather(futures, asynchronous=True))

        return self.retry(work)

    def wait_for(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """The result of an asynchronous call of the client, with checks of the cluster meanwhile."""
        self._check_open()

        async def run() -> _T:
            return await call()

        pending = asyncio.run_coroutine_threadsafe(run(), self.client.loop.asyncio_loop)
        try:
            while True:
                try:
                    return pending.result(_CHECK_INTERVAL)
                except TimeoutError:
                    if pending.done():
                        return pending.result()
                    self.check()
        finally:
            pending.cancel()  # after Ctrl-C or an error; no effect if it is done

    def check(self) -> None:
        """Raise ClusterError if the scheduler, a worker or all workers have been away for too long."""
        workers = self.get_workers()
        now = time.monotonic()
        heartbeats = {}
        for address, worker in workers.items():
            latest = worker["last_seen"]
            previous, since = self._heartbeats.get(address, (None, now))
            heartbeats[address] = (latest, since if latest == previous else now)
        self._heartbeats = heartbeats
        silent = [address for address, (_, since) in heartbeats.items() if now - since > TIMEOUT]
        if silent:
            raise ClusterError(
                f"the worker {silent[0]} has not responded for {TIMEOUT:.0f} seconds",
                advice=["End or restart it.", *REFIT],
            )
        if any(worker["status"] == "running" for worker in workers.values()):
            self._no_worker_since = None
        elif self._no_worker_since is None:
            self._no_worker_since = now
        elif now - self._no_worker_since > TIMEOUT:
            raise ClusterError(
                f"no worker is left, and none has connected for {TIMEOUT:.0f} seconds",
                advice=["Start workers.", *REFIT],
            )

    def _check_open(self) -> None:
        if self.client.status == "closed":
            raise _scheduler_error()


@contextmanager
def allow_large_arguments() -> Iterator[None]:
    """Disable Dask's warning about large arguments of tasks: here each is sent only once."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
        yield


def _scheduler_error() -> ClusterError:
    return ClusterError(
        "the scheduler does not respond",
        advice=["Check that it is running and that the network works.", *REFIT],
    )
