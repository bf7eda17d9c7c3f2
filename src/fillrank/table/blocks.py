"""Long arrays a block at a time, so that what is made on the way is as small as a block."""

from collections.abc import Iterator

_BLOCK = 2**20


def blocks(length: int, size: int = _BLOCK) -> Iterator[slice]:
    """Slices that cover ``length`` places in order.

    Examples
    --------
    >>> list(blocks(5, size=2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))
