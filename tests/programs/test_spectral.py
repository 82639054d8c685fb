"""Spectral complexity: the dense formula, and what scaling layers must leave unchanged."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.nn.networks import mlp
from steepest.programs import network_margins
from steepest.programs._norms import weight_matrices
from steepest.programs._spectral import normalized_margins, spectral_complexity

WIDTHS = (4, 9, 6, 3)
NET = mlp(WIDTHS, c_w=2.0, bias=False)
START, END = (weight_matrices(NET.init(jax.random.key(seed))) for seed in (0, 1))
X = jax.random.normal(jax.random.key(2), (8, 4))
Y = jnp.arange(8) % 3
FACTORS = st.lists(st.floats(0.01, 100), min_size=3, max_size=3)


def margins(weights):
    return network_margins(NET.apply(tuple({"w": w} for w in weights), X), Y)


def scaled(weights, factors):
    return [c * w for c, w in zip(factors, weights, strict=True)]


def oracle(weights, reference):
    """Equation (1.2) as printed, by NumPy, column norms of the transposes."""
    weights = [np.asarray(w) for w in weights]
    reference = [np.asarray(w) for w in reference]
    lipschitz = 1.0
    total = 0.0
    for w, start in zip(weights, reference, strict=True):
        top = np.linalg.norm(w, 2)
        columns = np.linalg.norm(w.T - start.T, axis=0)
        lipschitz *= top
        total += columns.sum() ** (2 / 3) / top ** (2 / 3)
    return lipschitz * total**1.5


def test_it_matches_the_dense_formula_also_when_compiled():
    expected = oracle(END, START)
    assert float(spectral_complexity(END, START)) == pytest.approx(expected, rel=1e-12)
    assert float(jax.jit(spectral_complexity)(END, START)) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(FACTORS)
def test_layers_scaled_with_product_one_change_nothing(factors):
    """c_1 c_2 c_3 = 1 leaves the function and its normalized margins, if the references are scaled too."""
    factors = np.array(factors) / np.prod(factors) ** (1 / 3)
    weights = scaled(END, factors)
    start = scaled(START, factors)
    before, after = (spectral_complexity(*pair) for pair in ((END, START), (weights, start)))
    assert float(after) == pytest.approx(float(before), rel=1e-10)
    assert np.allclose(
        normalized_margins(margins(weights), after, X), normalized_margins(margins(END), before, X)
    )


@settings(max_examples=30, deadline=None)
@given(FACTORS)
def test_the_product_of_spectral_norms_alone_needs_no_references(factors):
    """Margins over the product of spectral norms do not change under any positive factors of the layers."""
    weights = scaled(END, factors)
    before, after = (np.prod([np.linalg.norm(w, 2) for w in each]) for each in (END, weights))
    assert np.allclose(margins(weights) / after, margins(END) / before, rtol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 100))
def test_the_complexity_is_homogeneous_like_the_network(factor):
    """All layers and references times c: margins and complexity times c^L, normalized margins unchanged."""
    weights = scaled(END, [factor] * 3)
    start = scaled(START, [factor] * 3)
    complexity = spectral_complexity(weights, start)
    assert float(complexity) == pytest.approx(
        factor**3 * float(spectral_complexity(END, START)), rel=1e-10
    )
    assert np.allclose(margins(weights), factor**3 * margins(END), rtol=1e-10)


def test_nothing_moved_is_of_complexity_zero_and_one_moved_layer_counts_alone():
    """With one moved layer the sum of powers is that layer's: R = ‖W_1 − W_1(0)‖ · Π_{i>1} ‖W_i‖₂."""
    assert float(spectral_complexity(START, START)) == 0
    weights = [END[0], *START[1:]]
    others = np.prod([np.linalg.norm(w, 2) for w in START[1:]])
    expected = others * np.linalg.norm(END[0] - START[0], axis=1).sum()
    assert float(spectral_complexity(weights, START)) == pytest.approx(expected, rel=1e-12)


def test_normalized_margins_do_not_depend_on_the_unit_of_the_inputs():
    """A homogeneous network's margins are proportional to the inputs, as is ‖X‖_F; twice the examples: times √2."""
    complexity = spectral_complexity(END, START)
    one = normalized_margins(margins(END), complexity, X)
    params = tuple({"w": w} for w in END)
    ten = normalized_margins(network_margins(NET.apply(params, 10 * X), Y), complexity, 10 * X)
    assert np.allclose(one, ten, rtol=1e-10)
    twice = normalized_margins(jnp.tile(margins(END), 2), complexity, jnp.tile(X, (2, 1)))
    assert np.allclose(twice[:8], np.sqrt(2) * one, rtol=1e-10)


@pytest.mark.parametrize(("weights", "start"), [(END, START[:2]), (END, START[::-1]), ([], [])])
def test_lists_that_do_not_match_are_refused(weights, start):
    with pytest.raises(UserError, match="references of the same shapes"):
        spectral_complexity(weights, start)


def test_as_many_margins_as_inputs():
    with pytest.raises(UserError, match="x must be"):
        normalized_margins(jnp.ones(2), 1.0, X)
