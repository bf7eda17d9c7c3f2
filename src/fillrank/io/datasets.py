"""Published data sets, read from where their publisher keeps them."""

import hashlib
import shutil
import tempfile
import urllib.request
import zipfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError

from fillrank.errors import InputError, ReadError
from fillrank.io.contents import ZIP_ERRORS, member_content
from fillrank.io.text_layout import read_text
from fillrank.runtime.cache_folder import cache_folder
from fillrank.table.observations import Observations

TIMEOUT = 30  # seconds without an answer


_MOVIELENS = (
    "The data belong to GroupLens Research, University of Minnesota. They are for research; their "
    "licence, in the README beside them, does not allow to redistribute them, or to use them "
    "commercially, without permission."
)


class Dataset(NamedTuple):
    """Where a data set is published, which file of it has the ratings, and what it is."""

    url: str
    md5: str
    ratings: str
    title: str = ""
    shape: tuple[int, int] = (0, 0)
    n_entries: int = 0
    licence: str = ""


DATASETS = {
    "ml-1m": Dataset(
        "https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        "c4d9eecfca2ab87c1945afe126590906",
        "ratings.dat",
        "MovieLens 1M: ratings of movies, from 1 to 5 stars",
        (6040, 3706),
        1_000_209,
        _MOVIELENS,
    ),
    "ml-100k": Dataset(
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "0e33842e24a9c977be4e0107933c0723",
        "u.data",
        "MovieLens 100K: ratings of movies, from 1 to 5 stars",
        (943, 1682),
        100_000,
        _MOVIELENS,
    ),
}


def load(name: str, path: Any = None) -> Observations:
    """Load the ratings of a published data set.

    The data belong to GroupLens Research, University of Minnesota, whose licence, in the README
    beside the data, does not allow to redistribute them without permission. So fillrank does not
    bring them along: they are downloaded from their publisher, once, into your cache folder
    (``$XDG_CACHE_HOME``, ``%LOCALAPPDATA%``, ``~/Library/Caches`` on macOS, or ``~/.cache``).

    Parameters
    ----------
    name : {"ml-1m", "ml-100k"}
        MovieLens 1M (1,000,209 ratings of 3,706 movies by 6,040 users) or MovieLens 100K (100,000
        ratings of 1,682 movies by 943 users).
    path : str or Path, optional
        A folder or a zip that has the published files. Without it they are downloaded.

    Returns
    -------
    Observations
        Users are rows and movies are columns, under their published numbers.

    Examples
    --------
    >>> ratings = load("ml-100k")  # doctest: +SKIP
    """
    if name not in DATASETS:
        raise InputError(
            f"name must be one of {', '.join(map(repr, DATASETS))}, got {name!r} instead."
        )
    dataset = DATASETS[name]
    place = _download(name, dataset) if path is None else Path(path)
    data = _from_folder(place, name, dataset) if place.is_dir() else _from_zip(place, dataset)
    return read_text(data, f"{place} ({dataset.ratings})", None, "long", "error")


def _from_folder(folder: Path, name: str, dataset: Dataset) -> bytes:
    for file in (folder / dataset.ratings, folder / name / dataset.ratings):
        if file.is_file():
            return file.read_bytes()
    raise ReadError(f"{folder} has no {dataset.ratings}, as the published {name} has.")


def _from_zip(path: Path, dataset: Dataset) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if Path(member.filename).name == dataset.ratings:
                    return member_content(archive, member, str(path))
    except FileNotFoundError as error:
        raise ReadError(f"{path} does not exist; give a folder or a zip.") from error
    except ZIP_ERRORS as error:
        raise ReadError(f"{path} is no whole zip file: {error}.") from error
    raise ReadError(f"{path} has no {dataset.ratings} in it.")


def _download(name: str, dataset: Dataset) -> Path:
    """Fetch the published zip unless it is there; it gets its name only once it is whole."""
    target = cache_folder() / f"{name}.zip"
    if target.is_file():
        return target
    by_hand = f"Or download it by hand and give its place: load({name!r}, path=...)."
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
                    f"{dataset.url} is not as it was published: its MD5 is {md5}, not "
                    f"{dataset.md5}. Try again later. {by_hand}"
                )
            part.replace(target)
    except URLError as error:
        raise ReadError(
            f"{dataset.url} cannot be downloaded: {error.reason}. Is there a network? {by_hand}"
        ) from error
    except OSError as error:
        raise ReadError(f"{dataset.url} cannot be saved as {target}: {error}. {by_hand}") from error
    return target
