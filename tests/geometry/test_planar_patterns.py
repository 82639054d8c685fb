"""Many networks cut together: each as alone."""

import itertools

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import planar_patterns, planar_regions, relu_layers

SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])


def networks(number, widths=(2, 6, 5, 1), seed=0):
    rng = np.random.default_rng(seed)
    return [
        relu_layers(
            [rng.standard_normal((o, i)) / i**0.5 for i, o in itertools.pairwise(widths)],
            [rng.standard_normal(o) / 2 for o in widths[1:]],
        )
        for _ in range(number)
    ]


def same(together, alone, network):
    ours = together.patterns[together.owner == network]
    rows = lambda patterns: {tuple(row) for row in patterns.tolist()}
    return len(ours) == alone.count and rows(ours) == rows(alone.patterns)


def test_together_and_alone():
    nets = networks(300)  # more than one chunk
    together = planar_patterns(nets, SQUARE)
    for i in (0, 1, 17, 249, 250, 299):
        assert same(together, planar_regions(nets[i], SQUARE), i)


def test_a_polygon_for_each():
    nets = networks(4, (3, 5, 5, 1))
    triangles = np.random.default_rng(1).standard_normal((4, 3, 3)) * 3
    together = planar_patterns(nets, triangles)
    for i in range(4):
        assert same(together, planar_regions(nets[i], triangles[i]), i)


@pytest.mark.parametrize(
    ("nets", "corners", "words"),
    [
        ([], SQUARE, "at least one"),
        (networks(1) + networks(1, (2, 3, 5, 1)), SQUARE, "one shape"),
        (networks(2), np.stack([SQUARE] * 3), "one for each of 2"),
        (networks(2), SQUARE[:2], "three points"),
        ([networks(1)[0], networks(1)[0][:-1] * 1], SQUARE, "one shape"),
    ],
)
def test_what_does_not_fit_is_refused(nets, corners, words):
    with pytest.raises(UserError, match=words):
        planar_patterns(nets, corners)
