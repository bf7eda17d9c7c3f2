import errno
import json
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from fillrank.errors import InputError, OutputError
from fillrank.storage import array_file
from fillrank.storage.array_file import Content, read, write
from helpers.processes import LIMIT

ALL_DTYPES = sorted(array_file.DTYPES)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.fillrank"


def written_and_read(path, arrays, about=None):
    write(path, Content("model", about or {}, arrays))
    return read(path, "model")


def stored_types(path):
    """Return the types of the arrays in the file itself."""
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    return {name: info["dtype"] for name, info in header.items() if name != "__metadata__"}


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 3), (0, 4), (2, 1, 3)])
def test_arrays_are_restored_unchanged(path, dtype, shape):
    bits = np.random.default_rng(1).integers(0, 256, (*shape, 8), dtype=np.uint8)
    array = bits[..., 0] > 127 if dtype == "bool" else bits.view(dtype)[..., 0]
    (restored,) = written_and_read(path, {"x": array}).arrays.values()
    assert same_bits(restored, array)


def test_the_json_document_is_restored(path):
    about = {"a": [1, 1.5, True, None, "é\n\udc80\U0001f600"], "b": {"c": {}}, "": 2**70}
    assert repr(written_and_read(path, {}, about)) == repr(Content("model", about, {}))


@pytest.mark.parametrize("name", ["", "posterior/draws/17/left", "é \U0001f600", 'a"\\\n\x7f\x00'])
def test_any_name_is_allowed(path, name):
    assert list(written_and_read(path, {name: np.ones(2)}).arrays) == [name]


def test_a_path_that_is_not_text(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff"
    assert written_and_read(os.fsdecode(path), {"x": np.ones(2)}).arrays["x"].sum() == 2


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::3],
        np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        np.arange(5, dtype=">i4"),
        np.arange(5, dtype=">f4") / 3,
        np.broadcast_to(np.float64(3), (2, 2)),
        np.frombuffer(b"\0" * 9, np.uint8)[1:].view(np.float64),
    ],
    ids=[
        "transposed",
        "strided",
        "fortran",
        "big-endian",
        "big-endian float",
        "broadcast",
        "unaligned",
    ],
)
def test_any_memory_layout(path, array):
    (restored,) = written_and_read(path, {"x": array}).arrays.values()
    np.testing.assert_array_equal(restored, array)
    assert restored.dtype == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_compiled_code_treats_the_arrays_as_new_ones(path, dtype):
    # Were they read-only or not in C order, kernels would be compiled restored for them.
    new = np.ones((3, 2), dtype)
    fine = np.array([1 / 3], np.float32)
    arrays = written_and_read(path, {"x": new, "fine": fine}).arrays
    if dtype != "float16":  # which numba does not know on all machines
        assert numba.typeof(arrays["x"]) == numba.typeof(new)
    assert numba.typeof(arrays["fine"]) == numba.typeof(fine)
    for array in arrays.values():
        assert array.flags.carray  # C order, aligned, writable
        assert array.dtype.isnative


def test_float32_is_stored_as_float16_if_exact(path):
    half = np.array([1.5, -0.0, 65504.0, 2.0**-24, np.inf, -np.inf, np.nan], np.float32)
    third = np.array([1 / 3], np.float32)
    arrays = {
        "half": half,
        "third": third,
        "large": np.array([65505.0], np.float32),
        "tiny": np.array([2.0**-25], np.float32),
        "double": half.astype(np.float64),
        "own": half.astype(np.float16),
    }
    restored = written_and_read(path, arrays).arrays
    assert all(same_bits(restored[name], array) for name, array in arrays.items())
    assert stored_types(path) == {
        "half": "F16",
        "third": "F32",
        "large": "F32",
        "tiny": "F32",
        "double": "F64",
        "own": "F16",
    }


def test_a_nan_with_payload_is_not_compressed(path):
    strange = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert same_bits(written_and_read(path, {"x": strange}).arrays["x"], strange)
    assert stored_types(path) == {"x": "F32"}


MIXED = {"b": np.ones(2, "f4"), "a": np.zeros(3, np.int8), "c": np.ones(2, "f4"), "d": np.ones(1)}


def test_the_same_content_has_the_same_bytes_in_any_order(path):
    found = set()
    for names in ("abcd", "dcba", "bdac"):
        write(path, Content("model", {"x": 1}, {name: MIXED[name] for name in names}))
        found.add(path.read_bytes())
    assert len(found) == 1


SAVED = """
import sys
import numpy as np
from fillrank.storage.array_file import Content, write
arrays = {name: np.ones(3) for name in {"a", "b", "c", "d"}}
write(sys.argv[1], Content("model", {"x": 1}, arrays))
"""


def test_the_same_content_has_the_same_bytes_in_every_process(path):
    found = set()
    for seed in range(4):
        environment = os.environ | {"PYTHONHASHSEED": str(seed)}
        subprocess.run(
            [sys.executable, "-c", SAVED, path], env=environment, check=True, timeout=LIMIT
        )
        found.add(path.read_bytes())
    assert len(found) == 1


def test_safetensors_reads_the_file(path):
    from safetensors.numpy import load_file

    write(path, Content("model", {"x": 1}, MIXED | {"none": np.ones((0, 3)), "one": np.array(7)}))
    restored = load_file(path)
    assert restored.keys() == MIXED.keys() | {"none", "one"}
    for name, array in MIXED.items():
        np.testing.assert_array_equal(restored[name], array)


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"], dtype=object),
        np.array(["a"]),
        np.ones(1, np.complex64),
        np.ones(1, np.longdouble),
        np.zeros(1, "datetime64[s]"),
        np.zeros(1, [("a", np.int8)]),
    ],
    ids=lambda array: str(array.dtype),
)
def test_types_that_cannot_be_stored(path, array):
    with pytest.raises(InputError, match=r"arrays must have one of the types .*; left has"):
        write(path, Content("model", {}, {"left": array}))
    assert not path.exists()


@pytest.mark.parametrize(
    "about",
    [{"a": np.nan}, {"a": {1}}, {1: "a"}, {"a": (1,)}, [1], None, {"a": "\ud83d\ude00"}],
    ids=["nan", "set", "number as key", "tuple", "list", "None", "two surrogates"],
)
def test_values_that_json_would_change_are_refused(path, about):
    with pytest.raises(InputError, match="about must be"):
        write(path, Content("model", about, {}))
    assert not path.exists()


def test_a_name_that_the_format_reserves(path):
    with pytest.raises(InputError, match="__metadata__"):
        write(path, Content("model", {}, {"__metadata__": np.ones(1)}))


def test_a_header_that_is_too_long(path):
    write(path, Content("model", {}, {}))
    with pytest.raises(
        InputError, match=r"got 1, or too long a description of them\. Join small arrays"
    ):
        write(path, Content("model", {"a": "x" * 5_000_000}, {"x": np.ones(2)}))
    assert read(path, "model").arrays == {}
    assert os.listdir(path.parent) == [path.name]


LIMITED = """
import resource, sys
import numpy as np
from fillrank.storage.array_file import Content, write
from fillrank.errors import OutputError
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    write(sys.argv[1], Content("model", {}, {"x": np.ones(100_000)}))
except OutputError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits are those of Unix")
def test_without_space_the_old_file_is_unchanged(path):
    write(path, Content("model", {"old": 1}, {}))
    command = [sys.executable, "-c", LIMITED, path]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT)
    assert "larger than the disk or your limits allow" in run.stdout
    assert read(path, "model").about == {"old": 1}
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk(path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(array_file, "_save", full)
    with pytest.raises(OutputError, match="disk is full"):
        write(path, Content("model", {}, {}))


def test_a_missing_folder(tmp_path):
    with pytest.raises(OutputError, match="folder does not exist"):
        write(tmp_path / "none" / "x", Content("model", {}, {}))


def test_permissions_are_those_of_any_new_file(path):
    write(path, Content("model", {}, {}))
    (path.parent / "other").touch()
    assert path.stat().st_mode == (path.parent / "other").stat().st_mode
