import json
import math
from collections import OrderedDict
from typing import Any, Literal, NamedTuple, Optional, Union

import numpy as np
import pytest

from fillrank.errors import InputError, ReadError
from fillrank.kernels.ordinal import Scorer
from fillrank.posterior.model_file import _Levels
from fillrank.posterior.stored_features import stored_side
from fillrank.posterior.stored_low_rank import StoredDraw, StoredLowRank, StoredNoise
from fillrank.samplers import bpmf, gasr, ipm3f
from fillrank.samplers.feature_steps import Weights
from fillrank.samplers.model import Effect, Noise
from fillrank.samplers.noise_steps import NoiseState
from fillrank.samplers.threshold_steps import NO_ROW_THRESHOLDS, RowThresholds
from fillrank.solvers.fit import PathPoint
from fillrank.storage.array_file import DTYPES, Content, read, write
from fillrank.storage.serialization import Labels, pack, unpack, unpack_all
from fillrank.table.units import Units
from helpers.given_features import given_for


class Point(NamedTuple):
    x: float
    where: np.ndarray


class Named(NamedTuple):
    rows: Labels
    columns: Labels | None


class Shape(NamedTuple):
    name: str
    points: list[Point]
    origin: Point | None = None


def same(a, b):
    """Return whether two values are equal in every item, type and bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return same(list(a), list(b))
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)


def test_same_distinguishes_different_values():
    assert same(Point(1.0, np.ones(2)), Point(1.0, np.ones(2)))
    for other in (Point(1, np.ones(2)), (1.0, np.ones(2)), Point(1.0, np.ones(2, np.float32))):
        assert not same(Point(1.0, np.ones(2)), other)
    assert not same(0.0, -0.0)
    assert not same([1], [True])


def round_trip(hint, value):
    tree, arrays = pack(hint, value)
    assert {array.dtype.name for array in arrays.values()} <= DTYPES
    return unpack_all(hint, json.loads(json.dumps(tree, allow_nan=False)), arrays)


VALUES = [
    (None, None),
    (int, 5),
    (int, -(2**80)),
    (float, 0.1),
    (float, 5e-324),
    (float, -0.0),
    (float, 1e300),
    (float, math.inf),
    (float, -math.inf),
    (float, math.nan),
    (bool, True),
    (str, "é\n\udc80"),
    (str, "nan"),
    (Literal["auto", 1], "auto"),
    (Literal["auto", 1], 1),
    (int | Literal["auto"], "auto"),
    (int | Literal["auto"], 3),
    (Optional[float], None),  # noqa: UP045
    (Union[float, str], "nan"),  # noqa: UP007
    (float | str, math.nan),
    (float | str, "inf"),
    (int | float, 1.0),
    (int | float, 1),
    (bool | int, 1),
    (list[int], []),
    (list[int], [3, 4]),
    (tuple[float, ...], (0.5, 1.0)),
    (tuple[int, str], (1, "a")),
    (tuple[float, float] | None, (1.0, 5.0)),
    (tuple[()], ()),
    (dict[str, float], {"b": 1.0, "a": math.nan, "": 0.0}),
    (dict[int, float], {7: 0.5, -3: 0.5}),
    (np.ndarray, np.arange(3)),
    (list[np.ndarray], [np.zeros(2), np.ones((1, 2))]),
    (
        dict[str, np.ndarray],
        {"a/b": np.zeros(1), "a": np.ones(1), "": np.ones(2), "\udc80": np.ones(3)},
    ),
    (dict[str, dict[str, np.ndarray]], {"a/b": {"c": np.zeros(1)}, "a": {"b/c": np.ones(1)}}),
    (dict[int, np.ndarray], {1: np.zeros(1)}),
    (np.ndarray | None, np.zeros(1)),
    (Point, Point(0.5, np.zeros(2))),
    (Shape, Shape("s", [Point(1.0, np.zeros(1)), Point(2.0, np.ones(1))], Point(3.0, np.ones(2)))),
    (Shape, Shape("s", [], None)),
    (Labels, np.array([1, "1", 1.0, True], dtype=object)),
    (Labels | None, np.array(["2020-01-01"], "datetime64[D]")),
    (dict[str, Labels], {"rows": np.arange(3), "columns": np.array(["a"], dtype=object)}),
    (Named, Named(np.array(["a", 1], dtype=object), None)),
    (dict[str, Any], {"a": None, "b": True, "c": 1, "d": 1.0, "e": "x", "f": math.nan, "g": "nan"}),
    (Any, [None, True, 1, 1.0, "a", math.inf]),
    (Any, []),
]


@pytest.mark.parametrize(("hint", "value"), VALUES, ids=repr)
def test_values_are_restored_unchanged(hint, value):
    assert same(round_trip(hint, value), value)


def test_a_union_is_tried_in_its_order():
    # These hints are equal, so they must not be looked up by equality.
    assert same(round_trip(int | float, 2), 2)
    assert same(round_trip(float | int, 2), 2.0)
    assert same(round_trip(list[int | float], [2]), [2])
    assert same(round_trip(list[float | int], [2]), [2.0])


@pytest.mark.parametrize(
    ("hint", "value", "python"),
    [
        (int, np.int8(5), 5),
        (int, np.uint64(2**64 - 1), 2**64 - 1),
        (float, np.float64(0.1), 0.1),
        (float, np.float32(0.1), float(np.float32(0.1))),
        (float, np.float32(np.nan), math.nan),
        (float, 3, 3.0),
        (float, np.int32(3), 3.0),
        (float, -(2**53), -(2.0**53)),
        (bool, np.bool_(False), False),
        (str, np.str_("a"), "a"),
        (dict[int, int], {np.int64(3): np.int8(4)}, {3: 4}),
        (Any, np.float32(0.5), 0.5),
        (Any, np.int8(5), 5),
    ],
)
def test_numpy_scalars_become_python_scalars(hint, value, python):
    assert same(round_trip(hint, value), python)


def test_array_names_are_paths():
    shape = Shape("s", [Point(1.0, np.zeros(1))], Point(3.0, np.ones(2)))
    tree, arrays = pack(dict[str, Shape], {"a/b": shape}, "shapes")
    assert list(arrays) == ["shapes/a%2Fb/points/0/where", "shapes/a%2Fb/origin/where"]
    assert tree["a/b"]["origin"] == {"x": 3.0, "where": {"array": "shapes/a%2Fb/origin/where"}}


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, True),
        (int, 1.0),
        (int, "1"),
        (float, True),
        (float, "1"),
        (float, 2**53 + 1),
        (float, 10**400),
        (float, np.longdouble(1)),
        (float, None),
        (bool, 1),
        (str, b"a"),
        (None, 0),
        (Literal[1], True),
        (Literal["auto"], "Auto"),
        (int | Literal["auto"], 1.5),
        (list[int], (1,)),
        (list[int], [1, None]),
        (tuple[int, ...], [1]),
        (tuple[int, ...], Effect(1, 2)),
        (tuple[int, int], (1,)),
        (dict[str, int], {1: 1}),
        (dict[str, int], OrderedDict(a=1)),
        (dict[int, int], {"1": 1}),
        (dict[int, int], {True: 1}),
        (np.ndarray, [1.0]),
        (np.ndarray, np.float64(1)),
        (Labels, ["a"]),
        (Labels, np.array([("a", 1), None], dtype=object)),
        (Point, (0.5, np.zeros(2))),
        (Point, Effect(0.5, 1.0)),
        (Any, {"a": 1}),
        (Any, (1,)),
        (Any, [[1]]),
        (Any, np.zeros(1)),
        pytest.param(Any, np.random.default_rng(1), id="Any-generator"),
        (Any, b"a"),
    ],
    ids=repr,
)
def test_values_of_another_type_are_not_packed(hint, value):
    with pytest.raises(InputError, match="must be"):
        pack(hint, value)


def test_errors_name_the_path():
    shape = Shape("s", [Point(1.0, np.zeros(1)), Point("x", np.zeros(1))])
    message = r"shape/points/1/x must be a number to be stored in a file, got str 'x' instead"
    with pytest.raises(InputError, match=message):
        pack(Shape, shape, "shape")
    tree, arrays = pack(Shape, shape._replace(points=shape.points[:1]))
    tree["points"][0]["x"] = "x"
    with pytest.raises(ReadError, match=r"points/0/x must be a number, got 'x' instead\. Restore"):
        unpack(Shape, tree, arrays)


@pytest.mark.parametrize(
    "hint", [complex, object, list, dict, tuple, set[int], dict[float, int], np.float64, bytes, type],
    ids=str,
)  # fmt: skip
def test_unsupported_hints(hint):
    with pytest.raises(TypeError, match="cannot be stored"):
        pack(hint, None)
    with pytest.raises(TypeError, match="cannot be stored"):
        unpack(hint, None, {})


class Tree(NamedTuple):
    leaves: "list[Tree]"


def test_hints_cannot_contain_themselves():
    with pytest.raises(RecursionError):
        unpack(Tree, {"leaves": []}, {})


@pytest.mark.parametrize(
    ("hint", "value"),
    [(list[int] | tuple[int, ...], (1, 2)), (dict[str, float] | Effect, Effect(1.0, 2.0))],
)
def test_ambiguous_hints(hint, value):
    with pytest.raises(TypeError, match="cannot distinguish"):
        pack(hint, value)


ONE = {"a": np.zeros(1), "b": np.ones(1)}


@pytest.mark.parametrize(
    ("hint", "tree"),
    [
        (None, 0),
        (None, False),
        (int, 1.0),
        (int, True),
        (int, "1"),
        (int, None),
        (float, 1),
        (float, True),
        (float, "nan"),
        (float, {"float": "1.0"}),
        (float, math.nan),
        (bool, 1),
        (bool, None),
        (str, 1),
        (str, None),
        (Literal["auto"], "other"),
        (Literal["auto"], None),
        (Literal["auto"], ["auto"]),
        (Literal[1], True),
        (Literal[1], 1.0),
        (int | None, "a"),
        (int | None, [None]),
        (list[int], {}),
        (list[int], None),
        (list[int], "12"),
        (list[int], [1, "2"]),
        (tuple[int, ...], 5),
        (tuple[int, int], [1]),
        (tuple[int, int], [1, 2, 3]),
        (tuple[int, int], {"0": 1, "1": 2}),
        (dict[str, int], []),
        (dict[str, int], {"a": None}),
        (dict[int, int], {"a": 1}),
        (dict[int, int], {"01": 1}),
        (dict[int, int], {" 1": 1}),
        (dict[int, int], {"1_0": 1}),
        (dict[int, int], {"+1": 1}),
        (dict[int, int], {"-0": 1}),
        (dict[int, int], {"١": 1}),
        (dict[int, int], {"9" * 5000: 1}),
        (np.ndarray, "a"),
        (np.ndarray, {"array": "c"}),
        (np.ndarray, {"array": 1}),
        (np.ndarray, {"array": None}),
        (np.ndarray, {"array": ["a"]}),
        (np.ndarray, {"array": "a", "dtype": "float64"}),
        (np.ndarray, {}),
        (np.ndarray, None),
        (list[np.ndarray], [{"array": "a"}, {"array": "a"}]),
        (Labels, {"array": "a"}),
        (Labels, {"array": "c", "dtype": "int64"}),
        (Labels, {"array": "a", "dtype": "int64"}),
        (Labels, {"array": "a", "dtype": "object"}),
        (Labels, "a"),
        (Point, {"x": 1.0}),
        (Point, {"x": 1.0, "where": {"array": "a"}, "more": 1}),
        (Point, {"x": 1.0, "where": None}),
        (Point, {"x": None, "where": {"array": "a"}}),
        (Point, [1.0, {"array": "a"}]),
        (Point, None),
        (Any, {"a": 1}),
        (Any, {"float": "1"}),
        (Any, [[1]]),
        (Any, {"array": "a"}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_trees_that_do_not_match_are_not_unpacked(hint, tree):
    with pytest.raises(ReadError, match="Restore the file from a copy"):
        unpack(hint, tree, ONE)


def test_unused_arrays():
    assert same(unpack(np.ndarray, {"array": "a"}, ONE), ONE["a"])
    with pytest.raises(ReadError, match=r"these are not: \['b'\]"):
        unpack_all(np.ndarray, {"array": "a"}, ONE)
    assert same(
        unpack_all(list[np.ndarray], [{"array": "b"}, {"array": "a"}], ONE), [ONE["b"], ONE["a"]]
    )


def test_arrays_of_a_hint_that_did_not_match_are_not_used():
    tree, arrays = [{"array": "a"}, "x"], {"a": ONE["a"]}
    # The first hint uses the array before it turns out not to match.
    second = unpack_all(tuple[np.ndarray, int] | tuple[np.ndarray, str], tree, arrays)
    assert same(second, (ONE["a"], "x"))
    with pytest.raises(ReadError, match=r"these are not: \['a'\]"):
        unpack_all(tuple[np.ndarray, int] | tuple[dict[str, str], str], tree, arrays)


# What the package stores.


def array(*shape, dtype=np.float32):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


def draw():
    noise = StoredNoise(0.1, array(4, dtype=np.float64), None, math.inf)
    return StoredDraw(array(4, 2), array(3, 2), noise)


def noise_state():
    precisions = np.exp(array(4, dtype=np.float64)), np.ones(3)
    return NoiseState(Noise(1e-10, *precisions, math.inf), row_degrees=4.0, column_degrees=1e3)


STORED = {
    "gasr": (
        gasr.State,
        gasr.State(
            array(4, 4), array(3, 4), *(array(2, dtype=np.float64) for _ in range(4)),
            Effect(0.0, 0.25), Effect(-0.1, 1.0), 1.0, 1 / 3, noise_state(),
            Weights(np.ones((2, 4)), np.ones(1)), Weights(np.ones((0, 4)), np.ones(0)),
            array(2, 5, dtype=np.float64),
            RowThresholds(array(4, 6, dtype=np.float64), np.ones(4)), 17,
        ),
    ),
    "bpmf": (
        bpmf.State,
        bpmf.State(
            array(4, 2), array(3, 2), bpmf.FactorPrior(array(2), array(2, 2)),
            bpmf.FactorPrior(array(2), array(2, 2)),
            noise_state(), Weights(np.ones((2, 2)), np.ones(1)),
            Weights(np.ones((0, 2)), np.ones(0)), np.zeros((2, 0)), NO_ROW_THRESHOLDS, 3,
        ),
    ),
    "ipm3f": (
        ipm3f.State,
        ipm3f.State(np.ones((4, 0)), np.ones((3, 0)), array(4, 4, dtype=np.float64), 5),
    ),
    "posterior": (
        StoredLowRank,
        StoredLowRank([draw(), draw()], Units.equal(3.5, 1.1, 3, (1.0, 5.0)), draw(), None, None, None),
    ),
    "no scale, features": (
        StoredLowRank,
        StoredLowRank(
            [draw()], Units.equal(0.0, 1.0, 3, None), draw(),
            stored_side(given_for((4, 3)).blocks.rows, [array(4, 2)]), None, None,
        ),
    ),
    "ordinal": (
        _Levels,
        _Levels([Scorer(array(4, 2), array(3, 2), array(4, 4))] * 2, np.arange(1.0, 6.0)),
    ),
    "path": (
        list[PathPoint],
        [
            PathPoint(3.0, math.inf, 2, 0.5, 0.6, 10, True),
            PathPoint(1.0, 0.5, 3, 0.4, math.nan, 20, False),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("hint", "value"), STORED.values(), ids=STORED.keys())
def test_what_the_package_stores_is_restored_from_a_file(tmp_path, hint, value):
    tree, arrays = pack(hint, value, "stored")
    write(tmp_path / "x", Content("model", {"stored": tree}, arrays))
    content = read(tmp_path / "x", "model")
    assert same(unpack_all(hint, content.about["stored"], content.arrays), value)
