"""Time limits for the processes that tests start."""

import threading

# Seconds: below the limits of tests, so that the error is that of the process and names its command.
LIMIT = 240.0
SLOW_LIMIT = 1500.0


def end_when_late(process, seconds=LIMIT):
    """Kill a process when its time is over, so that whoever reads from it is not kept waiting."""
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    return process
