"""Files that `read` must refuse: damaged, of other programs, forged."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save_file

from fillrank.errors import ReadError
from fillrank.storage import array_file
from fillrank.storage.array_file import Content, read, write
from reference.planted import plant

CONTENT = Content(
    "model",
    {"rank": 3, "method": "M3F"},
    {
        "left": np.arange(3, dtype=np.float32) / 3,
        "right": np.ones((2, 2), np.float32),
        "none": np.ones((0, 3)),
        "n": np.array([5], np.int8),
        "own": np.ones(2, np.float16),
    },
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.fillrank"
    write(path, CONTENT)
    return path


def header_of(raw):
    return raw[8 : 8 + int.from_bytes(raw[:8], "little")]


def is_read(path, raw=None):
    if raw is not None:
        path.write_bytes(raw)
    try:
        read(path, "model")
    except ReadError:
        return False
    return True


def undetected(path):
    """Yield the positions at which a changed byte is not detected."""
    with open(path, "r+b", buffering=0) as file:
        for place, byte in enumerate(path.read_bytes()):
            others = {byte ^ (1 << bit) for bit in range(8)} | set(b' \t\n\r,:"04FIU')
            for other in others - {byte}:
                os.pwrite(file.fileno(), bytes([other]), place)
                if is_read(path):
                    yield place
            os.pwrite(file.fileno(), bytes([byte]), place)


def test_every_changed_byte_is_detected(path):
    assert header_of(path.read_bytes()).endswith(b" ")  # the padding too
    assert list(undetected(path)) == []
    assert is_read(path)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("_parse_header", 'text.rstrip(" ")', "text.rstrip()"),
        ("_checksum", 'key != "sha256"', 'key not in ("sha256", "about")'),
        ("_checksum", "(name, array.dtype.name, array.shape)", "(array.dtype.name, array.shape)"),
        ("_checksum", "(name, array.dtype.name, array.shape)", "(name, array.shape)"),
        ("_checksum", "(name, array.dtype.name, array.shape)", "(name, array.dtype.name)"),
        ("_checksum", "digest.update(", "len("),
    ],
    ids=["padding", "about", "name", "type", "shape", "bytes"],
)
def test_planted_bugs_accept_changed_bytes(path, monkeypatch, name, right, wrong):
    plant(monkeypatch, array_file, name, right, wrong)
    write(path, CONTENT)
    assert next(undetected(path), None) is not None


def test_truncated_files_are_refused(path):
    raw = path.read_bytes()
    for length in reversed(range(len(raw))):
        os.truncate(path, length)
        assert not is_read(path)
    assert not is_read(path, raw + b"\0")
    assert is_read(path, raw)


@pytest.mark.parametrize("place", [0.3, 0.5, 0.999])
def test_large_files(path, place):
    write(path, Content("model", {}, {"x": np.random.default_rng(1).random((1000, 1000))}))
    raw = bytearray(path.read_bytes())
    raw[int(place * len(raw))] ^= 4
    path.write_bytes(raw)
    with pytest.raises(
        ReadError, match=r"checksum does not match its content\. Restore it from a copy"
    ):
        read(path, "model")


def zipped():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model", "{" * 100)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "raw",
    [
        pickle.dumps({"model": np.ones(3)}),
        zipped(),
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0" * 100,
        b"user,item,rating\n1,2,3\n",
        b'{"rows": {"a": 1}}',
        b"\0",
        b"\0" * 8,
        b"\0" * 100,
    ],
    ids=["pickle", "zip", "png", "text", "json", "a zero", "8 zeros", "100 zeros"],
)
def test_foreign_files(path, raw):
    path.write_bytes(raw)
    with pytest.raises(
        ReadError, match=r"not written by fillrank\. Use a file that was written by fillrank"
    ):
        read(path, "model")


def test_a_pickle_is_never_loaded(path):
    class Trap:
        def __reduce__(self):
            return (os.remove, (str(path),))

    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ReadError):
        read(path, "model")
    assert path.exists()


@pytest.mark.parametrize(
    "metadata", [None, {}, {"format": "pt"}, {"kind": "model", "version": "1"}]
)
def test_arrays_of_another_program(path, metadata):
    save_file({"x": np.ones(3)}, path, metadata)
    with pytest.raises(ReadError, match="contains arrays, but was not written by fillrank"):
        read(path, "model")


def test_paths_that_are_not_files(path, tmp_path):
    path.write_bytes(b"")
    with pytest.raises(ReadError, match="is empty"):
        read(path, "model")
    with pytest.raises(ReadError, match="is a folder"):
        read(tmp_path, "model")
    with pytest.raises(ReadError, match=r"there is no file .*none"):
        read(tmp_path / "none", "model")
    with pytest.raises(ReadError, match="cannot be read: Not a directory"):
        read(path / "none", "model")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ReadError, match="is a device or a pipe"):
        read(tmp_path / "pipe", "model")


def test_a_file_without_read_permission(path, monkeypatch):
    # Simulated: permissions do not apply to an administrator, who may be running this.
    def forbidden(*arguments, **settings):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(array_file, "safe_open", forbidden)
    with pytest.raises(ReadError, match=r"cannot be read: Permission denied\. Check its"):
        read(path, "model")


def test_another_kind(path):
    with pytest.raises(ReadError, match="of kind 'model', but kind 'checkpoint' is required"):
        read(path, "checkpoint")


# Forged files: everything is valid, the checksum included, except for one thing.

METADATA = {"format": "fillrank", "kind": "model", "version": "1", "about": "{}", "halved": "[]"}


def forge(path, arrays=None, **changes):
    """Write a file with changed metadata (None: without that key) and a valid checksum."""
    arrays = {"x": np.ones(2)} if arrays is None else arrays
    metadata = {key: value for key, value in {**METADATA, **changes}.items() if value is not None}
    metadata.setdefault("sha256", array_file._checksum(metadata, arrays))
    save_file(arrays, path, metadata)


def test_a_forged_file_that_is_valid(path):
    forge(path, halved='["x"]', arrays={"x": np.ones(2, np.float16)})
    assert read(path, "model").arrays["x"].dtype == np.float32


@pytest.mark.parametrize("version", ["5", "17", "999999"])
def test_a_newer_version(path, version):
    forge(path, version=version, about=None, something="new")
    message = (
        rf"newer fillrank \(layout {version}; this one reads up to 4\)\. Run: pip install --upgrade"
    )
    with pytest.raises(ReadError, match=message):
        read(path, "model")


@pytest.mark.parametrize("version", ["0", "-1", "", "1.5", "9" * 5000, "²", "two", None])
def test_a_version_that_does_not_exist(path, version):
    forge(path, version=version)
    with pytest.raises(ReadError, match="its metadata is incomplete"):
        read(path, "model")


@pytest.mark.parametrize(
    "changes",
    [{"about": None}, {"kind": None}, {"halved": None}, {"sha256": ""}, {"more": "x"}],
    ids=str,
)
def test_missing_or_unknown_metadata(path, changes):
    forge(path, **changes)
    with pytest.raises(ReadError, match="is damaged"):
        read(path, "model")


@pytest.mark.parametrize(
    "about",
    [
        "",
        "[]",
        "3",
        "null",
        "{",
        "{}{}",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": 1, "a": 2}',
        '{"b": {"a": 1, "a": 2}}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": ' + "[" * 1_000_000 + "]" * 1_000_000 + "}",
        '{"a": ' * 500_000 + "1" + "}" * 500_000,
        "os.remove('x')",
    ],
    ids=lambda text: text[:20],
)
def test_about_that_is_not_a_json_object(path, about):
    forge(path, about=about)
    with pytest.raises(ReadError, match="is damaged"):
        read(path, "model")


@pytest.mark.parametrize(
    "halved", ["", "{}", "3", '["y"]', '["single"]', "[1]", '[["half"]]', '{"half": 1}', '"half"']
)
def test_invalid_lists_of_compressed_arrays(path, halved):
    arrays = {"half": np.ones(2, np.float16), "single": np.ones(2, np.float32)}
    forge(path, arrays, halved=halved)
    with pytest.raises(ReadError, match="is damaged"):
        read(path, "model")


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F8_E5M2", "C64", "F4", "X"])
def test_types_that_are_never_written(path, dtype):
    forge(path, {"x": np.ones(8, np.float64)})
    raw = path.read_bytes()
    n = {"BF16": 32, "C64": 8, "F4": 128}.get(dtype, 64)
    info = b'{"dtype":"%s","shape":[%d]' % (dtype.encode(), n)
    altered = header_of(raw).rstrip().replace(b'{"dtype":"F64","shape":[8]', info)
    path.write_bytes(len(altered).to_bytes(8, "little") + altered + raw[-64:])
    with pytest.raises(ReadError, match="is damaged"):
        read(path, "model")


# Hostile headers: they are refused before the checksum is computed.

TENSOR = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}


def tensors(**changes):
    header = {"__metadata__": {**METADATA, "sha256": ""}, "x": {**TENSOR, **changes}}
    return json.dumps(header, separators=(",", ":")).encode()


def pair(first, second):
    text = json.dumps(TENSOR, separators=(",", ":"))
    x, y = (text.replace("[0,8]", json.dumps(offsets)) for offsets in (first, second))
    return f'{{"x":{x},"y":{y}}}'.encode()


HOSTILE = {
    "nested": b"{" + b"[" * 1_000_000,
    "nested arrays": b'{"x":' + b"[" * 1_000_000,
    "nested objects": b'{"x":' * 500_000,
    "nested metadata": b'{"__metadata__":' + b'{"x":' * 500_000,
    "no text": b'{"\xff":1}',
    "negative": tensors(data_offsets=[-8, 0]),
    "backwards": tensors(data_offsets=[8, 0]),
    "beyond the end": tensors(data_offsets=[8, 16]),
    "far beyond the end": tensors(data_offsets=[0, 2**63], shape=[2**60]),
    "overlapping": pair([0, 8], [0, 8]),
    "partly overlapping": pair([0, 8], [4, 12]),
    "with a gap": pair([0, 8], [16, 24]),
    "overflow to 0": tensors(shape=[2**32, 2**32]),
    "overflow to 1": tensors(shape=[2**63, 2]),
    "large and empty": tensors(shape=[0, 2**62], data_offsets=[0, 0]),
    "huge number": tensors(shape=[10**400]),
    "negative shape": tensors(shape=[-1]),
    "fraction": tensors(shape=[1.0]),
    "100 dimensions": tensors(shape=[1] * 100),
    "many lists": b'{"x":[' + b"[]," * 1_000_000 + b"[]]}",
}


@pytest.mark.parametrize("header", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("data", [b"", b"\0" * 8, b"\0" * 24])
def test_hostile_headers(path, header, data):
    assert not is_read(path, len(header).to_bytes(8, "little") + header + data)


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 5_000_000, 0, 1])
def test_hostile_lengths(path, length):
    raw = path.read_bytes()
    assert not is_read(path, length.to_bytes(8, "little") + raw[8:])


def test_a_header_too_long(path):
    raw = path.read_bytes()
    long = header_of(raw) + b" " * 5_000_000
    assert not is_read(
        path, len(long).to_bytes(8, "little") + long + raw[8 + len(header_of(raw)) :]
    )


def with_header_changed(raw, old, new):
    """Return the file with a part of its header replaced."""
    header = header_of(raw)
    assert header.count(old) == 1
    more = header.replace(old, new)
    return len(more).to_bytes(8, "little") + more + raw[8 + len(header) :]


def test_repeated_keys(path):
    raw = path.read_bytes()
    once = b'"n":{"dtype":"I8"'
    tensor = header_of(raw)[header_of(raw).index(once) :].split(b"}")[0] + b"}"
    assert not is_read(path, with_header_changed(raw, tensor, tensor + b"," + tensor))
    kind = b'"kind":"model"'
    assert not is_read(path, with_header_changed(raw, kind, b'"kind":"checkpoint",' + kind))
    assert not is_read(path, with_header_changed(raw, once, once.replace(b"{", b'{"dtype":"U8",')))
    assert is_read(path, with_header_changed(raw, kind, kind))


def test_unknown_fields(path):
    raw = path.read_bytes()
    once = b'"n":{"dtype":"I8"'
    assert not is_read(path, with_header_changed(raw, once, once.replace(b"{", b'{"more":1,')))
