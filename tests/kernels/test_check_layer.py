"""The contract for layers of one's own: it lets right rules pass, and tells wrong ones."""

import importlib.util
from pathlib import Path

import jax
import pytest

from steepest.core.errors import UserError
from steepest.kernels import LayerLaw, check_layer
from steepest.kernels.wide import rule_for
from steepest.nn.layers import aggregate, dropout, global_sum_pool, layer_norm, pool, select

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_layer.py"
SHAPE = (4, 2)
QUICK = {"width": 16, "count": 100}


@pytest.fixture
def example():
    """Load the example anew, so that no program of another rule is kept."""
    spec = importlib.util.spec_from_file_location("own_layer", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wrong_rule(example, **methods):
    """Give the example's node another rule, which differs in some methods."""
    rule = type("Wrong", (example.OfFade,), methods)
    rule_for(example.Fade)(rule)
    return example.Fading(0.8)


def test_a_right_rule_breaks_no_law(example):
    """The layer of the example is right."""
    assert check_layer(example.Fading(0.8), SHAPE, jax.random.key(0), **QUICK).broken == ()


@pytest.mark.parametrize(
    "layer",
    [layer_norm(), pool(2), aggregate([[0.5, 0.5, 0, 0], [0, 0, 1.0, -1.0]])],
    ids=["layer_norm", "pool", "aggregate"],
)
def test_layers_of_the_library_break_no_law(layer):
    """Rules that normalize, average and mix positions are right."""
    assert check_layer(layer, SHAPE, jax.random.key(1), **QUICK).broken == ()


def test_a_wrong_factor_is_told_by_finite_networks(example):
    """No network has a tangent kernel that is a quarter too large."""

    def diagonal(self, step, numbers):
        right = example.OfFade.diagonal(self, step, numbers)
        return right._replace(theta=1.25 * right.theta)

    def pairs(self, *arguments):
        right = example.OfFade.pairs(self, *arguments)
        return right._replace(theta=1.25 * right.theta)

    layer = wrong_rule(example, diagonal=diagonal, pairs=pairs)
    broken = check_layer(layer, SHAPE, jax.random.key(2), width=16, count=500).broken
    assert set(broken) == {LayerLaw.FINITE, LayerLaw.MASKED}


def test_pairs_that_forget_the_second_input_are_told(example):
    """Numbers of the first input at both positions: the order counts, and displacements."""

    def pairs(self, read, index, layout, one, two, pairing):
        factor = one[0] * one[0]
        return read[0].map(lambda kernel: factor * kernel)

    layer = wrong_rule(example, pairs=pairs)
    assert LayerLaw.PAIRS in check_layer(layer, SHAPE, jax.random.key(3), **QUICK).broken


def test_a_diagonal_that_pairs_do_not_give_is_told(example):
    """A diagonal that is off by a thousandth."""

    def diagonal(self, step, numbers):
        right = example.OfFade.diagonal(self, step, numbers)
        return right._replace(theta=1.001 * right.theta)

    layer = wrong_rule(example, diagonal=diagonal)
    assert LayerLaw.PAIRS in check_layer(layer, SHAPE, jax.random.key(4), **QUICK).broken


def test_less_precision_than_the_bound_says_is_told(example):
    """Factors in half precision, where a rule is asked for single precision."""

    def pairs(self, read, index, layout, one, two, pairing):
        factor = one[0] * two[0]
        single = factor.dtype == "float32"
        rounded = factor.astype("float16").astype("float32") if single else factor
        return read[0].map(lambda kernel: rounded * kernel)

    layer = wrong_rule(example, pairs=pairs)
    assert LayerLaw.BOUND in check_layer(layer, SHAPE, jax.random.key(5), **QUICK).broken


@pytest.mark.parametrize(
    "layer", ["tanh", global_sum_pool(), select(0)], ids=["tanh", "global_sum_pool", "select"]
)
def test_activations_and_layers_that_leave_no_positions(layer):
    """One network ends behind them."""
    check = check_layer(layer, SHAPE, jax.random.key(6), **QUICK)
    assert check.broken == ()


@pytest.mark.parametrize(
    ("layer", "key"),
    [(dropout(0.5), jax.random.key(0)), (layer_norm(), 0), (None, jax.random.key(0))],
)
def test_what_cannot_be_tried_is_refused(layer, key):
    """Finite networks without a key drop nothing, so that dropout would be told as wrong."""
    with pytest.raises(UserError):
        check_layer(layer, SHAPE, key)


def test_no_shape_is_refused():
    """A shape names the channels at least."""
    with pytest.raises(UserError):
        check_layer(layer_norm(), (), jax.random.key(0))
