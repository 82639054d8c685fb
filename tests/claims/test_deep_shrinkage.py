"""Shrinkage by decay on deep linear networks: against a grid, a quasi-Newton method, and descent by hand."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

from steepest.claims.implicit_bias.deep_shrinkage import theory
from steepest.claims.implicit_bias.deep_shrinkage.claim import DeepShrinkage
from steepest.claims.implicit_bias.deep_shrinkage.experiment import (
    MOMENTUM,
    Problems,
    from_target,
    random_start,
    train,
)
from steepest.core.errors import UserError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("layers", [2, 3, 4, 7])
@pytest.mark.parametrize("decay", [0.1, 0.6, 20.0])
def test_the_best_singular_value_is_that_of_a_grid(layers, decay):
    critical = theory.threshold(decay, layers)
    for s in critical * np.array([0.3, 0.97, 1.03, 1.5, 3.0]):
        z = np.linspace(0, 1.1 * s, 40_001)
        value = theory.cost(z, s, decay, layers)
        best = z[value.argmin()]
        assert theory.shrunk(s, decay, layers) == pytest.approx(best, abs=1e-4 * s)
        # a minimum of the grid that is none of its ends, and the last point where the slope turns
        inner = np.flatnonzero((value[1:-1] < value[:-2]) & (value[1:-1] < value[2:])) + 1
        largest = z[inner[-1]] if len(inner) else 0.0
        assert theory.kept(s, decay, layers) == pytest.approx(largest, abs=1e-4 * s)


@pytest.mark.parametrize("layers", [3, 4, 7])
def test_at_the_threshold_both_minima_are_as_good_and_at_the_turning_one_disappears(layers):
    s = theory.threshold(0.3, layers)
    z = theory.landing(0.3, layers)
    assert theory.cost(z, s, 0.3, layers) == pytest.approx(s**2 / 2, rel=1e-12)
    assert theory.kept(s, 0.3, layers) == pytest.approx(z, rel=1e-9)
    assert z / s == pytest.approx((layers - 2) / (layers - 1))
    turning, at = theory.turning(0.3, layers)
    assert theory.kept(0.999 * turning, 0.3, layers) == 0
    assert theory.kept(1.000001 * turning, 0.3, layers) == pytest.approx(at, rel=0.01)


def test_two_layers_are_the_limit():
    for s in (0.2, 0.5, 2.0):
        assert theory.shrunk(s, 0.3, 2) == pytest.approx(max(s - 0.3, 0))
    assert theory.threshold(0.3, 2) == pytest.approx(0.3)


@pytest.mark.parametrize("layers", [2, 3, 4])
def test_a_product_costs_its_quasi_norm_at_least(layers):
    for _ in range(20):
        weights = RNG.standard_normal((layers, 3, 3))
        product = np.linalg.multi_dot(weights[::-1])
        left, z, right = np.linalg.svd(product)
        least = layers * (z ** (2 / layers)).sum()
        assert (weights**2).sum() > least
        balanced = from_target(left, z, right.T, layers, layers + 1)
        assert np.linalg.multi_dot(balanced[:layers][::-1]) == pytest.approx(product)
        assert (balanced**2).sum() == pytest.approx(least)


@pytest.mark.parametrize("layers", [2, 3])
def test_the_least_value_of_small_networks_by_a_quasi_newton_method(layers):
    singular = np.array([0.5, 1.1])
    left, right = (np.linalg.qr(RNG.standard_normal((2, 2)))[0] for _ in range(2))
    target = left * singular @ right.T

    def value(flat):
        weights = flat.reshape(layers, 2, 2)
        misfit = target - np.linalg.multi_dot(weights[::-1])
        return 0.5 * (misfit**2).sum() + 0.125 * (weights**2).sum()

    starts = RNG.standard_normal((25, layers * 4))
    best = min((minimize(value, start) for start in starts), key=lambda end: end.fun)
    expected = sum(theory.cost(theory.shrunk(s, 0.25, layers), s, 0.25, layers) for s in singular)
    assert best.fun == pytest.approx(expected, rel=1e-6)
    of_product = np.linalg.svd(np.linalg.multi_dot(best.x.reshape(layers, 2, 2)[::-1]))[1]
    law = [theory.shrunk(s, 0.25, layers) for s in singular[::-1]]
    assert of_product == pytest.approx(law, abs=1e-4)


def test_training_is_descent_by_hand():
    target = RNG.standard_normal((2, 2, 2))
    start = np.stack([random_start(RNG, 1.0, number, 3, 2) for number in (2, 3)])
    ended = train(Problems(target, np.array([0.2, 0.3]), np.array([2, 3]), start), 0.01, 50)
    for i, (number, decay) in enumerate(((2, 0.2), (3, 0.3))):
        weights = start[i].copy()
        memory = np.zeros_like(weights)
        for _ in range(50):
            slope = np.zeros_like(weights)
            chain = lambda parts: np.linalg.multi_dot([np.eye(2), np.eye(2), *parts])
            misfit = chain(weights[:number][::-1]) - target[i]
            for layer in range(number):
                above = chain(weights[layer + 1 : number][::-1])
                below = chain(weights[:layer][::-1])
                slope[layer] = above.T @ misfit @ below.T + decay * weights[layer]
            memory = slope + MOMENTUM * memory
            weights -= 0.01 * memory
        assert ended.weights[i] == pytest.approx(weights, abs=1e-12)
        value = 0.5 * ((chain(weights[:number][::-1]) - target[i]) ** 2).sum()
        value += 0.5 * decay * (weights[:number] ** 2).sum()
        assert ended.value[i] == pytest.approx(value)


def test_right_laws_hold_and_slightly_wrong_ones_fail():
    claim = DeepShrinkage(
        **{**DeepShrinkage.tiny, "layers": (2, 3), "steps": 800, "search_steps": 300}
    )
    setting = claim.setting(jax.random.key(0))
    law = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    verdicts = lambda law: {check.id: check.verdict.value for check in claim.checks(law, observed)}
    assert set(verdicts(law).values()) == {"holds"}
    assert all(condition.holds for condition in claim.run_conditions(observed))
    for name in ("shrunk", "least", "threshold", "landing"):
        wrong = law.replace(**{name: (law.quantity(name).dims, law[name] * (1 + 1e-4))})
        assert verdicts(wrong)[name] == "fails"
    astray = law.replace(kept=("layers s", law["kept"] + 1e-4))
    assert verdicts(astray)["ends"] == "fails"
    assert verdicts(law.replace(dies=("layers", [1.0, 1.0])))["dies"] == "fails"


def test_outside_of_its_hypotheses():
    for fields in ({"decay": 0.0}, {"spectrum": (0.4, 0.7071)}, {"decays": (0.1, 0.2, 0.5)}):
        claim = DeepShrinkage(**fields)
        assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))
    with pytest.raises(UserError, match="layers"):
        DeepShrinkage(layers=(2,))
