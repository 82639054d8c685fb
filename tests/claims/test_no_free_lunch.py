"""No free lunch: both exact laws by full enumeration of small worlds, learners that keep what they saw, bad input."""

import itertools

import jax
import numpy as np
import pytest
from scipy.integrate import quad

from steepest.catalogue import load
from steepest.claims.expressivity.no_free_lunch.claim import NoFreeLunch
from steepest.claims.expressivity.no_free_lunch.experiment import (
    kernel,
    nearest,
    on_the_circle,
    on_the_line,
)
from steepest.claims.expressivity.no_free_lunch.theory import circle_error, line_error, unseen
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready


def nearest_on_line(cells, labels, drawn):
    kept = sorted(set(drawn))
    return [labels[min(kept, key=lambda c: (abs(c - cell), c))] for cell in range(cells)]


@pytest.mark.parametrize(("cells", "m", "changes"), [(4, 2, 1), (5, 3, 2), (5, 2, 4), (6, 1, 3)])
def test_error_on_the_line_is_the_mean_over_all_samples_and_functions(cells, m, changes):
    errors = []
    for borders in itertools.combinations(range(cells - 1), changes):
        labels = [sum(border < cell for border in borders) % 2 for cell in range(cells)]
        for drawn in itertools.product(range(cells), repeat=m):
            answers = nearest_on_line(cells, labels, drawn)
            errors.append(np.mean(np.array(answers) != labels))
    assert line_error(cells, m, changes) == pytest.approx(np.mean(errors), abs=1e-12)


def test_the_law_is_the_mean_over_all_functions_for_any_learner_that_keeps_labels():
    cells = 4
    m = 3
    errors = []
    for labels in itertools.product((0, 1), repeat=cells):
        for drawn in itertools.product(range(cells), repeat=m):
            kept = {cell: labels[cell] for cell in drawn}
            stubborn = [kept.get(cell, max(kept.values())) for cell in range(cells)]
            errors.append(np.mean(np.array(stubborn) != labels))
    assert np.mean(errors) == pytest.approx(float(unseen(cells, m)) / 2)


def test_nearest_and_kernel_keep_what_they_saw():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    labels = np.where(rng.random((6, 20)) < 0.5, 1.0, -1.0)
    held = rng.random((6, 3, 20)) < 0.5
    for answers in (nearest(x, labels, held), kernel(x, labels, held)):
        assert (answers == labels[:, None])[held].all()


def test_the_line_is_sampled_as_its_law_says():
    """With one sample the nearest is the only one; its error is that of a stranger."""
    errors = on_the_line(np.random.default_rng(0), 9600, 12, (1, 4), 3)
    for column, m in enumerate((1, 4)):
        spread = errors[:, column].std() / np.sqrt(len(errors))
        assert abs(errors[:, column].mean() - line_error(12, m, 3)) <= 4 * spread


def test_the_circle_is_sampled_as_its_law_says():
    """By distances to all samples; and the law by another rule of integration, with its limits."""
    lean = 0.9
    errors = on_the_circle(np.random.default_rng(0), 400, (5, 20), 3, lean)
    rng = np.random.default_rng(1)
    for column, m in enumerate((5, 20)):
        law = circle_error(m, 3, lean)
        spread = errors[:, column].std() / np.sqrt(len(errors))
        assert abs(errors[:, column].mean() - law) <= 4 * spread
        places = rng.random((4000, m))
        x = rng.random((4000, 1))
        apart = np.abs(places - x)
        apart = np.minimum(apart, 1 - apart)
        neighbour = np.take_along_axis(places, apart.argmin(1)[:, None], 1)
        wave = lambda at: lean * np.cos(2 * np.pi * 3 * at)
        dense = 0.5 - (wave(x) * wave(neighbour)).mean() / 2
        assert dense == pytest.approx(law, abs=0.02)
        density = lambda r, m: 2 * m * (1 - 2 * r) ** (m - 1) * np.cos(6 * np.pi * r)
        by_quadrature = quad(density, 0, 0.5, args=(m,), limit=200)[0]
        assert law == pytest.approx(0.5 - lean**2 / 4 * by_quadrature, abs=1e-10)
    assert circle_error(40, 5, lean) == pytest.approx(0.3231, abs=5e-5)
    assert circle_error(4000, 5, lean) == pytest.approx(0.5 - lean**2 / 4, abs=1e-4)
    limit = 0.5 - lean**2 / 4 / (1 + (np.pi * 50 / 2000) ** 2)
    assert circle_error(2000, 50, lean) == pytest.approx(limit, abs=1e-5)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"samples": [64]}, "at least two increasing"),
        ({"samples": [64, 32]}, "at least two increasing"),
        ({"networks": 500}, "at most 400"),
        ({"cells": 16, "changes": 16}, "15 borders"),
        ({"changes": 0}, "at least 1"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("no-free-lunch", changes=fields)


def test_functions_whose_cells_were_all_seen_count_as_nothing():
    """With few cells and many samples some functions have nothing to err at."""
    claim = NoFreeLunch(
        cells=12, samples=(8, 40), functions=400, networks=10, width=4, steps=10, changes=2
    )
    key = jax.random.key(0)
    with jax.enable_x64(True):
        observed = claim.observe(claim.setting(key), key)
    for name in ("nearest", "kernel", "network"):
        share = observed[f"unseen_{name}"]
        assert np.isfinite(share).all()
        assert abs(share.mean() - 0.5) <= 4 * share.std() / np.sqrt(len(share))


@pytest.mark.parametrize("fields", [{"heads": 0.8}, {"samples": [8, 5000]}])
def test_out_of_range(fields):
    asked = ready("no-free-lunch", "tiny", changes={**load("no-free-lunch").tiny, **fields})
    assert execute(asked).verdict == "out-of-range"
