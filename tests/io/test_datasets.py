import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fillrank.errors import InputError, ReadError
from fillrank.io import datasets
from fillrank.io.datasets import Dataset, load, load_titles
from helpers.same_entries import as_dict

ML_1M = "1::1193::5::978300760\n1::661::3::978302109\n2::1193::4::978298413\n"
ML_100K = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t302\t1\t878887116\n"
ENTRIES = {
    "ml-1m": {(1, 1193): 5, (1, 661): 3, (2, 1193): 4},
    "ml-100k": {(196, 242): 3, (196, 302): 1, (186, 302): 3},
}
TITLES = {
    "ml-1m": {73: "Misérables, Les (1995)", 1193: "Cuckoo's Nest (1975)"},
    "ml-100k": {242: "Kolya (1996)", 302: "Café Society"},
}
FILES = {
    "ml-1m": {
        "ratings.dat": ML_1M,
        "movies.dat": b"73::Mis\xe9rables, Les (1995)::Drama\n1193::Cuckoo's Nest (1975)::Drama\n",
    },
    "ml-100k": {
        "u.data": ML_100K,
        "u.item": b"242|Kolya (1996)|24-Jan-1997||x|0\n302|Caf\xe9 Society||||0\n",
    },
}


def zipped(name):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"{name}/README", "Not to be redistributed.")
        for file, content in FILES[name].items():
            archive.writestr(f"{name}/{file}", content)
    return buffer.getvalue()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fillrank"


@pytest.fixture
def publisher(monkeypatch):
    """A web server with small data sets under the published names; gives what it was asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            name = self.path.strip("/").removesuffix(".zip")
            self.send_response(200 if name in ENTRIES else 404)
            self.end_headers()
            if name in ENTRIES:
                self.wfile.write(zipped(name))

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    for name, dataset in datasets.DATASETS.items():
        served = Dataset(
            f"http://127.0.0.1:{server.server_port}/{name}.zip",
            hashlib.md5(zipped(name)).hexdigest(),
            dataset.ratings,
            titles=dataset.titles,
        )
        monkeypatch.setitem(datasets.DATASETS, name, served)
    yield asked
    server.shutdown()
    server.server_close()


def publish(monkeypatch, **changes):
    changed = datasets.DATASETS["ml-1m"]._replace(**changes)
    monkeypatch.setitem(datasets.DATASETS, "ml-1m", changed)


@pytest.mark.parametrize("name", ENTRIES)
def test_from_a_folder_or_a_zip(tmp_path, name):
    (tmp_path / "published.zip").write_bytes(zipped(name))
    with zipfile.ZipFile(tmp_path / "published.zip") as archive:
        archive.extractall(tmp_path / "folder")
    for path in ("published.zip", "folder", f"folder/{name}"):
        assert as_dict(load(name, tmp_path / path)) == ENTRIES[name]
        assert as_dict(load(name, str(tmp_path / path))) == ENTRIES[name]
        assert load_titles(name, tmp_path / path) == TITLES[name]


def test_three_fields_are_enough(tmp_path):
    lines = [line.rsplit("::", 1)[0] for line in ML_1M.split()]
    (tmp_path / "ratings.dat").write_text("\n".join(lines))
    assert as_dict(load("ml-1m", tmp_path)) == ENTRIES["ml-1m"]


@pytest.mark.parametrize("name", ENTRIES)
def test_downloads_once(cache, publisher, name):
    for _ in range(2):
        assert as_dict(load(name)) == ENTRIES[name]
        assert load_titles(name) == TITLES[name]
    assert publisher == [f"/{name}.zip"]
    assert [path.name for path in cache.iterdir()] == [f"{name}.zip"]


def test_files_that_differ_from_the_published_ones_are_deleted(cache, publisher, monkeypatch):
    publish(monkeypatch, md5="0" * 32)
    with pytest.raises(
        ReadError, match=r"differs from the published one: its MD5 is [0-9a-f]{32}, not 0"
    ):
        load("ml-1m")
    assert list(cache.iterdir()) == []


def test_no_such_page(cache, publisher, monkeypatch):
    publish(monkeypatch, url=datasets.DATASETS["ml-1m"].url.replace("ml-1m.zip", "gone.zip"))
    with pytest.raises(ReadError, match=r"gone.zip: the file cannot be downloaded \(Not Found\)"):
        load("ml-1m")
    assert list(cache.iterdir()) == []


def test_no_network(cache, monkeypatch):
    publish(monkeypatch, url="http://127.0.0.1:9/ml-1m.zip")
    with pytest.raises(ReadError) as caught:
        load("ml-1m")
    message = str(caught.value)
    assert "http://127.0.0.1:9/ml-1m.zip: the file cannot be downloaded" in message
    assert "Check the network connection." in message
    assert "set path=... to its path" in message


def test_cache_that_cannot_be_written(tmp_path, publisher, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ReadError, match=r"ml-1m.zip: the file cannot be saved as .*path=\.\.\."):
        load("ml-1m")


def test_published_addresses():
    for name, dataset in datasets.DATASETS.items():
        assert dataset.url == f"https://files.grouplens.org/datasets/movielens/{name}.zip"
        assert len(dataset.md5) == 32


def test_paths_without_the_data(tmp_path):
    with pytest.raises(ReadError, match=r"has no ratings.dat, the ratings of ml-1m"):
        load("ml-1m", tmp_path)
    with pytest.raises(ReadError, match=r"the folder has no u.item, the titles of ml-100k"):
        load_titles("ml-100k", tmp_path)
    with pytest.raises(
        ReadError, match=r"nowhere.zip: the file does not exist; pass a folder or a zip"
    ):
        load("ml-1m", tmp_path / "nowhere.zip")
    (tmp_path / "broken.zip").write_bytes(zipped("ml-1m")[:-40])
    with pytest.raises(ReadError, match=r"broken.zip: not a complete zip file"):
        load("ml-1m", tmp_path / "broken.zip")
    (tmp_path / "other.zip").write_bytes(zipped("ml-100k"))
    with pytest.raises(ReadError, match=r"other.zip: the file has no ratings.dat"):
        load("ml-1m", tmp_path / "other.zip")


def test_unknown_name():
    with pytest.raises(InputError, match="one of 'ml-1m', 'ml-100k', got 'netflix'"):
        load("netflix")
