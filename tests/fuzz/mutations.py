"""Changes to bytes that often expose defects of readers, for any format."""

import random
import re
from collections.abc import Callable, Sequence

MAX_CHANGES = 4
MAX_SLICE = 64
NUMBER = re.compile(rb"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
TOKENS = (
    b"",
    b" ",
    b"0",
    b"-0",
    b"-1",
    b"007",
    b"1.5",
    b"1,5",
    b"1e",
    b"1e-320",
    b"1e39",
    b"-1e308",
    b"1e999",
    b"0x10",
    b"1_000",
    b"2147483648",
    b"9223372036854775808",
    b"18446744073709551616",
    b"9" * 30,
    b"9" * 5000,
    b"NaN",
    b"nan",
    b"inf",
    b"-Infinity",
    b"NA",
    b"--",
    b"?",
    b'"',
    b'""',
    b"\t",
    b"\r",
    b"\n",
    b",",
    b";",
    b"::",
    b"%",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",  # a lone surrogate
    "\u0661\u0662".encode(),  # digits for Python, but not ASCII
    "\u2028\x85\x1c\x1f".encode(),  # line breaks for str.splitlines
)
INTEGERS = (0, 1, -1, 2, 127, 255, 2**15, 2**16 - 1, 2**31 - 1, -(2**31), 2**32, 2**62, -(2**63))


def mutated(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Apply one to four changes, some of them with parts of other inputs."""
    for _ in range(rng.randint(1, MAX_CHANGES)):
        change = rng.choice(_CHANGES)
        data = change(rng, data) if change is not splice else splice(rng, data, rng.choice(others))
    return data


def _slice(rng: random.Random, data: bytes) -> slice:
    start = rng.randint(0, len(data))
    return slice(start, min(len(data), start + rng.randint(1, MAX_SLICE)))


def flip(rng: random.Random, data: bytes) -> bytes:
    """Flip a bit."""
    if not data:
        return data
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwrite(rng: random.Random, data: bytes) -> bytes:
    """Replace a byte by a random one."""
    if not data:
        return data
    changed = bytearray(data)
    changed[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(changed)


def cut(rng: random.Random, data: bytes) -> bytes:
    """Truncate, as an interrupted transfer does."""
    return data[: rng.randint(0, len(data))]


def delete(rng: random.Random, data: bytes) -> bytes:
    """Remove some bytes."""
    part = _slice(rng, data)
    return data[: part.start] + data[part.stop :]


def insert(rng: random.Random, data: bytes) -> bytes:
    """Insert a token or random bytes."""
    position = rng.randint(0, len(data))
    new = rng.choice(TOKENS) if rng.random() < 0.7 else rng.randbytes(rng.randint(1, 8))
    return data[:position] + new + data[position:]


def duplicate(rng: random.Random, data: bytes) -> bytes:
    """Repeat some bytes, sometimes 200 times."""
    part = _slice(rng, data)
    times = rng.choice((1, 1, 1, 3, 200))
    return data[: part.stop] + data[part] * times + data[part.stop :]


def splice(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Join the start of one input and the end of another."""
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def edit_number(rng: random.Random, data: bytes) -> bytes:
    """Replace a number in text by a token."""
    numbers = list(NUMBER.finditer(data))
    if not numbers:
        return insert(rng, data)
    found = rng.choice(numbers)
    return data[: found.start()] + rng.choice(TOKENS) + data[found.end() :]


def edit_integer(rng: random.Random, data: bytes) -> bytes:
    """Replace some bytes by a binary integer."""
    size = rng.choice((1, 2, 4, 8))
    if len(data) < size:
        return data
    position = rng.randint(0, len(data) - size)
    value = rng.choice(INTEGERS) % 2 ** (8 * size)
    return data[:position] + value.to_bytes(size, "little") + data[position + size :]


def drop_line(rng: random.Random, data: bytes) -> bytes:
    """Remove or move a line."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    line = lines.pop(rng.randrange(len(lines)))
    if rng.random() < 0.5:
        lines.insert(rng.randint(0, len(lines)), line)
    return b"".join(lines)


_CHANGES: tuple[Callable[..., bytes], ...] = (
    flip,
    overwrite,
    cut,
    delete,
    insert,
    duplicate,
    splice,
    edit_number,
    edit_number,
    edit_integer,
    drop_line,
)
