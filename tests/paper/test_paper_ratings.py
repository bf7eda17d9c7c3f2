import numpy as np
import pytest

from fillrank.errors import InputError, ReadError
from fillrank.paper.ratings import EACHMOVIE, GENERATED, MOVIELENS, generated, sources


@pytest.fixture
def movielens(tmp_path):
    (tmp_path / "ml-1m").mkdir()
    lines = [
        f"{user}::{movie}::{1 + (user * movie) % 5}\n" for user in (1, 2) for movie in (5, 6, 9)
    ]
    (tmp_path / "ml-1m" / "ratings.dat").write_text("".join(lines))
    return tmp_path


def add_eachmovie(folder):
    folder.mkdir(exist_ok=True)
    (folder / "train.csv").write_text("user,movie,score\n1,10,6\n1,11,5\n2,10,1\n")
    (folder / "test.csv").write_text("user,movie,score\n2,11,4\n3,12,2\n")


def test_movielens_is_found_from_both_folders(movielens):
    for folder in (movielens, movielens / "ml-1m"):
        found = sources(folder, quick=False, n_splits=5)
        assert list(found) == [MOVIELENS]
        assert found[MOVIELENS].n_splits == 5
        assert found[MOVIELENS].fingerprint() == [2, 3, 6]


def test_splits_differ_and_are_reproducible(movielens):
    source = sources(movielens, quick=False, n_splits=5)[MOVIELENS]
    first, repeated, other = (source.split(number) for number in (0, 0, 1))
    assert len(first.train) == 5
    assert len(first.test) == 1
    np.testing.assert_array_equal(first.train.values, repeated.train.values)
    tests = {(int(s.test.rows[0]), int(s.test.columns[0])) for s in (first, repeated, other)}
    assert len(tests) == 2


def test_eachmovie_sample_has_its_published_split_and_common_labels(movielens):
    add_eachmovie(movielens / "eachmovie-sample")
    source = sources(movielens, quick=False, n_splits=5)[EACHMOVIE]
    assert source.n_splits == 1
    assert source.fingerprint() == [3, 3, 5]
    train, test = source.split(0)
    assert train.shape == test.shape == (3, 3)
    entries = set(zip(test.rows.tolist(), test.columns.tolist(), test.values.tolist(), strict=True))
    assert entries == {(2, 11, 4.0), (3, 12, 2.0)}
    np.testing.assert_array_equal(train.row_labels, test.row_labels)
    np.testing.assert_array_equal(np.sort(train.values), [1.0, 5.0, 6.0])


def test_messages_for_wrong_folders_name_the_options(tmp_path):
    with pytest.raises(InputError, match=r"ml-1m.*nowhere does not exist"):
        sources(tmp_path / "nowhere", quick=False, n_splits=5)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--data must be a folder.*is a file"):
        sources(tmp_path / "file", quick=False, n_splits=5)
    with pytest.raises(ReadError, match=r"no ratings.dat.*--data.*--quick"):
        sources(tmp_path, quick=False, n_splits=5)[MOVIELENS].fingerprint()
    with pytest.raises(InputError, match="omit either --quick or --data"):
        sources(tmp_path, quick=True, n_splits=2)


def test_generated_ratings_are_on_a_scale_with_popular_columns():
    assert list(sources(None, quick=True, n_splits=2)) == [GENERATED]
    data = generated()
    assert data.value_range() == (1.0, 5.0)
    assert data.shape == (200, 120)
    assert len(data) == 200 * 30
    counts = np.bincount(data.columns)
    assert counts[:10].min() > 2 * counts[-10:].max()
