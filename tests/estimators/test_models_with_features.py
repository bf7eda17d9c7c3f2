"""What becomes of models with features: files, copies, and longer runs."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import ReadError
from fillrank.features.blocks import NO_BLOCKS, Field, PatternCode, TableCode
from fillrank.features.given import NOT_GIVEN
from fillrank.posterior import stored_features
from fillrank.posterior.halves import halved
from fillrank.storage.array_file import read, write
from helpers.fitted_models import cells_of, new_rows
from helpers.given_features import fit_given, given_for, table_block
from helpers.posterior_draws import some_draws
from helpers.quick_fits import all_cells, table
from helpers.small_patterns import small_patterns  # noqa: F401
from reference.planted import plant

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
X = table(20, 12)
GIVEN = given_for(X.shape)
SETTINGS = {
    "max_rank": 3, "n_sweeps": 20, "burn_in": 8, "n_chains": 1, "n_threads": 1, "random_state": 0,
    "progress": False, "units": "table", "noise": "both",
}  # fmt: skip
METHODS = {
    "GASR": fr.GASR,
    "GASR float64": lambda **settings: fr.GASR(dtype="float64", **settings),
    "BPMF": fr.BPMF,
}
EACH = pytest.mark.parametrize("name", METHODS)


def fitted(name, given=GIVEN, **changes):
    return fit_given(METHODS[name](**(SETTINGS | changes)), X, given)


@pytest.fixture(scope="module")
def models():
    return {name: fitted(name) for name in METHODS}


def arrays_of(value):
    """All arrays in a value, with what they are in."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [array for each in value for array in arrays_of(each)]
    return [np.array(value, dtype=object if isinstance(value, str) else None)]


def assert_same(one, other):
    """All that is fitted is equal to the bit."""
    parts = (
        (
            model.posterior_.draws,
            model.posterior_.mean,
            model.posterior_.blocks,
            model.history_,
            model.traces_,
        )
        for model in (one, other)
    )
    for first, second in zip(*map(arrays_of, parts), strict=True):
        assert (first.dtype, first.shape) == (second.dtype, second.shape)
        assert first.tolist() == second.tolist()


def assert_same_answers(one, other):
    rows, columns = all_cells(X.shape)
    for request in (
        lambda model: model.predict(rows, columns),
        lambda model: model.predict_interval(rows, columns),
        lambda model: model.transform(new_rows("GASR")),
        lambda model: model.fold_in(new_rows("GASR")).predict_interval([0, 2], [1, 2]),
        lambda model: model.fold_in(cells_of("GASR", n_columns=2), axis="columns").predict(
            [3, 4], [0, 1]
        ),
    ):
        np.testing.assert_array_equal(request(one), request(other))


# What a model has


@EACH
def test_draws_have_the_weights_of_the_blocks(name, models):
    posterior = models[name].posterior_
    dtype = np.dtype("float64" if name == "GASR float64" else "float32")
    n_factors = posterior.draws[0].left.shape[1]
    for side, n_own, n_other in ((0, 20, 12), (1, 12, 20)):
        features, missingness = posterior.blocks[side]
        assert isinstance(features.code, TableCode)
        assert isinstance(missingness.code, PatternCode)
        assert features.values.shape == (n_own, 4)
        assert missingness.values.shape == (n_own, 3)
        assert missingness.code.directions.shape == (n_other, 3)
        for block in posterior.blocks[side]:
            assert block.values.dtype == block.code.directions.dtype == dtype
        for draw in posterior.draws:
            assert draw[3 + side].shape == (7, n_factors)
            assert draw[3 + side].dtype == dtype


@EACH
def test_the_values_of_a_model_are_those_of_its_sampler(name, models):
    model = models[name]
    features = model._run_state.model.features
    for blocks, side in zip(model.posterior_.blocks, features, strict=True):
        np.testing.assert_array_equal(np.hstack([block.values for block in blocks]), side.values)


@pytest.mark.parametrize("name", ["GASR", "BPMF"])
def test_without_features_weights_are_empty(name):
    model = fitted(name, NOT_GIVEN, missingness=False)
    assert model.posterior_.blocks == NO_BLOCKS
    for draw in (*model.posterior_.draws, model.posterior_.mean):
        assert draw.row_weights.shape == draw.column_weights.shape == (0, 0)


@EACH
def test_the_history_has_shares(name, models):
    history = models[name].history_
    names = [
        f"{side}_{block}_share"
        for side in ("row", "column")
        for block in ("features", "missingness")
    ]
    assert list(history)[-4:] == names
    assert all(((history[each] > 0) & (history[each] < 1)).all() for each in names)
    posterior = models[name].to_arviz()["posterior"]
    for each in names:
        np.testing.assert_array_equal(posterior[each], history[each][:, 8:])


# Files


@EACH
def test_a_loaded_model_is_the_same_to_the_bit(name, models, tmp_path):
    model = models[name]
    for with_data in (False, True):
        model.save(tmp_path / "model", with_data=with_data)
        loaded = fr.load(tmp_path / "model")
        assert_same(loaded, model)
        assert_same_answers(loaded, model)
        loaded.save(tmp_path / "copy", with_data=with_data)
        assert (tmp_path / "copy").read_bytes() == (tmp_path / "model").read_bytes()
    assert loaded.settings["missingness"] is True


def test_a_model_of_new_rows_is_loaded(models, tmp_path):
    for axis, new in (("rows", new_rows("GASR")), ("columns", cells_of("GASR", n_columns=2))):
        model = models["GASR"].fold_in(new, axis=axis)
        model.save(tmp_path / "model")
        loaded = fr.load(tmp_path / "model")
        np.testing.assert_array_equal(
            loaded.predict_interval([0, 1], [1, 0]), model.predict_interval([0, 1], [1, 0])
        )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("block.values, code.means", "block.values[::-1], code.means"),
        ("code.means, code.directions", "code.means, code.directions.astype('float16')"),
        ("_texts(block.terms)", "_texts(block.terms[::-1])"),
    ],
)
def test_planted_bugs_in_what_is_stored_are_detected(old, new, models, tmp_path, monkeypatch):
    plant(monkeypatch, stored_features, "_stored_block", old, new)
    with pytest.raises((AssertionError, ReadError)):
        test_a_loaded_model_is_the_same_to_the_bit("GASR", models, tmp_path)


def test_text_of_any_kind_and_many_terms_can_be_stored(tmp_path):
    """The description of a file has a limit, and the names of the terms are not in it."""
    strange = ("", " ", "a/b", "\udcff", "王", "\n")
    fields = (
        Field("\ud800", "category", 0.0, 1.0, strange, True),
        *(Field(f"a field of the name {j}", "number", 0.0, 1.0, (), False) for j in range(60_000)),
    )
    terms = (*(f"term {level}" for level in strange), "missing", *(f.name for f in fields[1:]))
    block = table_block(20, fields=fields[:1], terms=terms[:7])
    directions = np.zeros((len(terms), block.values.shape[1]))
    code = TableCode(fields, np.zeros(len(terms)), directions)
    block = block._replace(code=code, terms=terms)
    given = GIVEN._replace(blocks=GIVEN.blocks._replace(rows=(block,)))
    model = fitted("GASR", given, n_sweeps=10)
    model.save(tmp_path / "model")
    assert fr.load(tmp_path / "model").posterior_.blocks.rows[0].code.fields == fields
    assert fr.load(tmp_path / "model").posterior_.blocks.rows[0].terms == terms


def in_block(part, make):
    """Return a function that replaces an array of the first block of rows."""

    def forge(content):
        name = f"posterior_/row_features/blocks/0/{part}"
        content.arrays[name] = make(content.arrays[name])

    return forge


def in_weights(make):
    def forge(content):
        name = "posterior_/row_features/weights"
        content.arrays[name] = make(content.arrays[name])

    return forge


def renamed(content):
    content.about["parts"]["posterior_"]["row_features"]["blocks"][0]["name"] = "others"


def as_text(text):
    return lambda labels: np.frombuffer(text.encode(), np.uint8)


FORGERIES = {
    "another name": (renamed, "not those of its history"),
    "fewer draws": (in_weights(lambda w: w[:-1]), "weights in every draw"),
    "flat weights": (in_weights(lambda w: w.reshape(len(w), -1)), "weights in every draw"),
    "numbers as terms": (in_block("terms", as_text("[1,2,3,4]")), "must be text"),
    "numbers as names": (in_block("fields/names", as_text("[1,2]")), "must be text"),
    "a field less": (in_block("fields/names", as_text('["age"]')), "fields .* do not match"),
    "a level less": (in_block("fields/levels", as_text('["red"]')), "levels .* do not match"),
    "levels that are not there": (
        in_block("fields/n_levels", lambda n: np.array([-1, 3])), "levels .* do not match"
    ),
    "more levels than fit in memory": (
        in_block("fields/n_levels", lambda n: np.array([2**62, 2**62 + 2])), "do not match"
    ),
    "levels of another field": (
        in_block("fields/n_levels", lambda n: n[::-1].copy()), "categories must have"
    ),
    "numbers as flags": (
        in_block("fields/is_category", lambda flags: flags.astype("int8")), "do not match"
    ),
    "scale 0": (in_block("fields/numbers", np.zeros_like), "scale .* must be positive"),
}  # fmt: skip


@pytest.mark.parametrize(("forge", "message"), FORGERIES.values(), ids=FORGERIES)
def test_forgeries_are_refused_with_a_reason(forge, message, models, tmp_path):
    path = tmp_path / "forged.fillrank"
    models["GASR"].save(path)
    content = read(path, "model")
    forge(content)
    write(path, content)
    with pytest.raises(ReadError, match=f"forged.fillrank cannot be loaded: .*{message}"):
        fr.load(path)


def test_a_solver_has_no_features(models, tmp_path):
    path = tmp_path / "model"
    models["GASR"].save(path)
    features = read(path, "model")
    fr.SoftImpute(max_rank=2, progress=False).fit(X).save(path)
    content = read(path, "model")
    name = "row_features"
    part = features.about["parts"]["posterior_"][name]
    content.about["parts"]["posterior_"][name] = part
    content.arrays.update({k: v for k, v in features.arrays.items() if f"/{name}/" in k})
    weights = f"posterior_/{name}/weights"
    n_factors = content.arrays["posterior_/draws/0/left"].shape[1]
    content.arrays[weights] = np.zeros((1, 7, n_factors), np.float32)
    for key, array in content.arrays.items():
        if f"/{name}/" in key and array.dtype == np.float32:
            dtype = content.arrays["posterior_/draws/0/left"].dtype
            content.arrays[key] = array.astype(dtype)
    write(path, content)
    with pytest.raises(ReadError, match="features, which no solver takes"):
        fr.load(path)


def test_weights_are_rounded_with_their_draws():
    cells = np.repeat(np.arange(30), 20), np.tile(np.arange(20), 30)
    weights = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    draws = [
        draw._replace(row_weights=weights, column_weights=weights)
        for draw in some_draws(30, 20, dtype="float32")
    ]
    draws = [draw._replace(left=4 * draw.left, right=draw.right / 4) for draw in draws]
    for draw, rounded in zip(draws, halved(draws, *cells), strict=True):
        balance = np.linalg.norm(rounded.left, axis=0) / np.linalg.norm(draw.left, axis=0)
        np.testing.assert_allclose(rounded.row_weights, weights * balance, rtol=2e-3)
        np.testing.assert_allclose(rounded.column_weights, weights / balance, rtol=2e-3)
        for each in rounded[3:5]:
            assert np.array_equal(each, each.astype(np.float16))
            assert each.dtype == np.float32
    large = [draw._replace(row_weights=1e9 * weights) for draw in draws]
    assert halved(large, *cells) is large


# Copies, and longer runs


@EACH
def test_copies_are_the_same(name, models):
    model = models[name]
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert_same(other, model)
        assert_same_answers(other, model)


@EACH
def test_a_clone_fits_the_same(name, models):
    assert_same(fit_given(clone(models[name]), X, GIVEN), models[name])


@EACH
@pytest.mark.parametrize("n_chains", [1, 2])
def test_run_longer_equals_a_longer_run(name, n_chains):
    model = fitted(name, n_sweeps=14, n_chains=n_chains)
    assert_same(model.run_longer(6), fitted(name, n_chains=n_chains))


def test_a_pickled_model_runs_longer():
    model = pickle.loads(pickle.dumps(fitted("GASR", n_sweeps=14)))
    assert_same(model.run_longer(6), fitted("GASR"))
