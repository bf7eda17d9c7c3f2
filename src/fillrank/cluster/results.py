"""What tasks on a cluster come to, whoever dies over them."""

from __future__ import annotations

from typing import Any

from fillrank.cluster.watch import Watch


def results(watch: Watch, futures: list[Any]) -> list[Any]:
    """What tasks come to. One that has been given up because its workers died is begun again."""
    import distributed

    def work() -> list[Any]:
        given_up = [
            future
            for future in futures
            if future.status == "error" and isinstance(future.exception(), distributed.KilledWorker)
        ]
        if given_up:
            watch.client.retry(given_up)
        return watch.ask(lambda: watch.client.gather(futures, asynchronous=True))

    return watch.until_done(work)
