"""Published data sets, downloaded from their publishers."""

import hashlib
import shutil
import tempfile
import urllib.request
import zipfile
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.error import URLError

from fillrank.errors import InputError, ReadError, Setting, Text
from fillrank.io.files import ZIP_ERRORS, decode, read_zip_member
from fillrank.io.text_layout import read_text
from fillrank.io.titles import parse_movielens, typed_titles
from fillrank.runtime.cache_folder import cache_folder
from fillrank.table.observations import Observations

TIMEOUT = 30  # seconds without a response


_MOVIELENS = (
    "The data belong to GroupLens Research, University of Minnesota. They are for research. Their "
    "licence, in the README beside them, does not allow redistribution or commercial use without "
    "permission."
)


class Dataset(NamedTuple):
    """The location of a data set, the files in it with ratings and titles, and a description."""

    url: str
    md5: str
    ratings: str
    title: str = ""
    shape: tuple[int, int] = (0, 0)
    n_entries: int = 0
    licence: str = ""
    titles: str = ""


DATASETS = {
    "ml-1m": Dataset(
        "https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        "c4d9eecfca2ab87c1945afe126590906",
        "ratings.dat",
        "MovieLens 1M: ratings of movies, from 1 to 5 stars",
        (6040, 3706),
        1_000_209,
        _MOVIELENS,
        "movies.dat",
    ),
    "ml-100k": Dataset(
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "0e33842e24a9c977be4e0107933c0723",
        "u.data",
        "MovieLens 100K: ratings of movies, from 1 to 5 stars",
        (943, 1682),
        100_000,
        _MOVIELENS,
        "u.item",
    ),
}


def load(name: str, path: Any = None) -> Observations:
    """Load the ratings of a published data set.

    The data belong to GroupLens Research, University of Minnesota, whose licence, in the README
    beside the data, does not allow redistribution without permission. So fillrank does not include
    them: they are downloaded once from their publisher into your cache folder
    (``$XDG_CACHE_HOME``, ``%LOCALAPPDATA%``, ``~/Library/Caches`` on macOS, or ``~/.cache``).

    Parameters
    ----------
    name : {"ml-1m", "ml-100k"}
        MovieLens 1M (1,000,209 ratings of 3,706 movies by 6,040 users) or MovieLens 100K (100,000
        ratings of 1,682 movies by 943 users).
    path : str or Path, optional
        A folder or a zip file with the published files. By default they are downloaded.

    Returns
    -------
    Observations
        Users are rows and movies are columns, with their published numbers as labels.

    Examples
    --------
    >>> ratings = load("ml-100k")  # doctest: +SKIP
    """
    content, source = _read_member(name, path, "ratings")
    return read_text(decode(content, source), source, None, "long", "error").data


def load_titles(name: str, path: Any = None) -> dict[int, str]:
    """Load the titles of the movies of a published data set, by their numbers.

    Parameters
    ----------
    name, path
        As for `load`.

    Returns
    -------
    dict of number to title
        As `fillrank.read_titles` returns it. Some movies have no ratings.

    Examples
    --------
    >>> titles = load_titles("ml-100k")  # doctest: +SKIP
    """
    return typed_titles(parse_movielens(*_read_member(name, path, "titles")))


def _read_member(name: str, path: Any, kind: Literal["ratings", "titles"]) -> tuple[bytes, str]:
    """The content of one of the files of a data set, and its name in messages."""
    if name not in DATASETS:
        raise InputError(
            f"name must be one of {', '.join(map(repr, DATASETS))}, got {name!r} instead."
        )
    dataset = DATASETS[name]
    location = _download(name, dataset) if path is None else Path(path)
    member = dataset.ratings if kind == "ratings" else dataset.titles
    is_folder = location.is_dir()
    content = _from_folder(location, name, member) if is_folder else _from_zip(location, member)
    if content is None:
        what = "folder" if is_folder else "file"
        raise ReadError(f"the {what} has no {member}, the {kind} of {name}", place=location)
    return content, f"{location} ({member})"


def _from_folder(folder: Path, name: str, member: str) -> bytes | None:
    for file in (folder / member, folder / name / member):
        if file.is_file():
            return file.read_bytes()
    return None


def _from_zip(path: Path, member: str) -> bytes | None:
    try:
        with zipfile.ZipFile(path) as archive:
            for each in archive.infolist():
                if Path(each.filename).name == member:
                    return read_zip_member(archive, each, str(path))
    except FileNotFoundError as error:
        raise ReadError(
            "the file does not exist; pass a folder or a zip file", place=path
        ) from error
    except ZIP_ERRORS as error:
        raise ReadError(f"not a complete zip file ({error})", place=path) from error
    return None


def _download(name: str, dataset: Dataset) -> Path:
    """Download the published zip file unless it is cached; it is renamed once it is complete."""
    target = cache_folder() / f"{name}.zip"
    if target.is_file():
        return target
    manually: Text = ("Or download it manually and set ", Setting("path", ...), " to its path.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            part = Path(folder) / "part"
            opened = urllib.request.urlopen(dataset.url, timeout=TIMEOUT)
            with opened as source, part.open("wb") as file:
                shutil.copyfileobj(source, file)
            md5 = hashlib.md5(part.read_bytes(), usedforsecurity=False).hexdigest()
            if md5 != dataset.md5:
                raise ReadError(
                    f"the file differs from the published one: its MD5 is {md5}, not {dataset.md5}",
                    place=dataset.url,
                    advice=["Try again later.", manually],
                )
            part.replace(target)
    except URLError as error:
        raise ReadError(
            f"the file cannot be downloaded ({error.reason})",
            place=dataset.url,
            advice=["Check the network connection.", manually],
        ) from error
    except OSError as error:
        raise ReadError(
            f"the file cannot be saved as {target} ({error})", place=dataset.url, advice=manually
        ) from error
    return target
