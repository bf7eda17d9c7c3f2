"""The ziggurat, by both of its entrances: the plain draw, and the one from a row's bits."""

import numpy as np
import pytest
from scipy import special, stats

from fillrank.draws.normal import _AREA, _TAIL, EDGE, HEIGHT, _try_layer, normal_from_bits
from fillrank.draws.streams import row_bits
from helpers.draw_many import (
    ALARM,
    binomial,
    chi2,
    fill_normal,
    fill_normal_rows,
    ks,
    new_stream,
    sample,
    z_test,
)

PATHS = {"normal": fill_normal, "normal_from_bits": fill_normal_rows}


@pytest.fixture(scope="module", params=PATHS)
def draws(request):
    return sample(PATHS[request.param], n=8_000_000)


def test_layers_have_equal_areas():
    # From layer 1 to the top one, which closes the ziggurat: the recursion did not aim at it.
    areas = EDGE[1:-1] * np.diff(HEIGHT[1:])
    assert np.allclose(areas, _AREA, rtol=0.0, atol=1e-9)
    assert EDGE[256] == 0.0
    tail = np.sqrt(np.pi / 2) * special.erfc(_TAIL / np.sqrt(2))
    assert _TAIL * HEIGHT[1] + tail == pytest.approx(_AREA, rel=1e-9)
    assert np.all(np.diff(EDGE) < 0.0)


def test_all_layers_are_visited_equally_often():
    bits = np.empty(200_000, dtype=np.uint64)
    row_bits(new_stream("layers"), 0, bits)
    layers = [_try_layer(b)[0] for b in bits]
    assert chi2(np.bincount(layers, minlength=256), np.full(256, 1 / 256)) > ALARM


def test_distribution(draws):
    assert ks(draws[:1_000_000], special.ndtr) > ALARM


def test_every_layer_has_its_share(draws):
    # The cells end where the layers do: an error in one layer's wedge shows in its own cell.
    ends = np.append(EDGE[:0:-1], np.inf)
    counts, _ = np.histogram(np.abs(draws), bins=ends)
    assert counts.min() > 100
    assert chi2(counts, np.diff(2.0 * special.ndtr(ends))) > ALARM


@pytest.mark.parametrize("beyond", [2.0, _TAIL, 4.5])
def test_tail_probabilities(draws, beyond):
    for side in (draws, -draws):
        assert binomial(np.sum(side > beyond), draws.size, special.ndtr(-beyond)) > ALARM


def test_distribution_of_the_tail(draws):
    tail = np.abs(draws[np.abs(draws) > _TAIL])
    assert tail.size > 1500
    assert ks(tail, lambda x: 1.0 - special.ndtr(-x) / special.ndtr(-_TAIL)) > ALARM


def test_moments(draws):
    n = draws.size
    assert z_test(draws, 0.0, 1.0) > ALARM
    squares = stats.chi2(n)
    total = np.sum(draws**2)
    assert 2.0 * min(squares.cdf(total), squares.sf(total)) > ALARM
    assert z_test(draws**3, 0.0, 15.0) > ALARM
    assert z_test(draws**4, 3.0, 96.0) > ALARM
    assert binomial(np.sum(draws > 0.0), n, 0.5) > ALARM


def test_neighbours_are_uncorrelated(draws):
    assert z_test(draws[1:] * draws[:-1], 0.0, 1.0) > ALARM
    assert z_test((draws[1:] ** 2 - 1.0) * (draws[:-1] ** 2 - 1.0), 0.0, 4.0) > ALARM


def test_rows_can_be_visited_in_any_order():
    bits = np.empty(16, dtype=np.uint64)
    stream = new_stream("rows")

    def visit(rows):
        found = {}
        for row in rows:
            row_bits(stream, row, bits)
            for component in range(16):
                found[row, component] = normal_from_bits(bits[component], stream, row, component)
        return found

    # 3200 draws, so that some forty of them need more than their own bits.
    assert visit(range(200)) == visit(range(199, -1, -1))
