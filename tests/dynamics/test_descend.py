import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.dynamics import descend, logarithmic, minibatch, schedule


def quadratic(w):
    return 0.5 * jnp.sum(jnp.array([1.0, 3.0]) * w**2)


def by_hand(lr, steps):
    w = np.ones(2)
    risks = [0.5 * (w[0] ** 2 + 3 * w[1] ** 2)]
    for _ in range(steps):
        w = w * (1 - lr * np.array([1.0, 3.0]))
        risks.append(0.5 * (w[0] ** 2 + 3 * w[1] ** 2))
    return np.array(risks), w


def test_equals_a_plain_loop():
    path = descend(quadratic, jnp.ones(2), optax.sgd(0.1), 25)
    risks, w = by_hand(0.1, 25)
    np.testing.assert_allclose(path.risk, risks, rtol=1e-12)
    np.testing.assert_allclose(path.params, w, rtol=1e-12)
    assert not path.diverged
    assert path.diverged_at == -1


@pytest.mark.parametrize(
    "optimizer", [optax.sgd(0.05, momentum=0.9), optax.adam(0.05), optax.adamw(0.05)]
)
def test_equals_optax_stepped_by_hand(optimizer):
    path = descend(quadratic, jnp.ones(2), optimizer, 30, record=30)
    w = jnp.ones(2)
    memory = optimizer.init(jnp.ones(2))
    for _ in range(30):
        updates, memory = optimizer.update(jax.grad(quadratic)(w), memory, w)
        w = optax.apply_updates(w, updates)
    np.testing.assert_allclose(path.params, w, rtol=1e-12)


@given(st.integers(0, 40), st.integers(1, 50))
@settings(max_examples=20, deadline=None)
def test_the_cadence_changes_what_is_recorded_and_nothing_else(steps, cadence):
    path = descend(quadratic, jnp.ones(2), optax.sgd(0.1), steps, record=cadence)
    risks, _ = by_hand(0.1, steps)
    assert path.steps[0] == 0
    assert path.steps[-1] == steps
    np.testing.assert_allclose(path.risk, risks[np.asarray(path.steps)], rtol=1e-12)


def test_observers_are_recorded_at_the_marks():
    marks = np.array([0, 1, 5, 20])
    path = descend(
        quadratic, jnp.ones(2), optax.sgd(0.1), 20, record=marks, observe={"w": lambda w: w}
    )
    assert path.observed["w"].shape == (4, 2)
    np.testing.assert_allclose(path.observed["w"][2], [0.9**5, 0.7**5], rtol=1e-12)


def test_a_divergence_is_recorded_not_raised():
    path = descend(
        quadratic, jnp.ones(2), optax.sgd(1.0), 400, ceiling=1e6
    )  # factor −2 a step on the second axis
    assert path.diverged
    first = int(path.diverged_at)
    assert 1.5 * 4.0**first > 1e6 >= 1.5 * 4.0 ** (first - 1)
    assert np.isnan(path.risk[first:]).all()
    assert np.isfinite(path.risk[:first]).all()


def test_mapping_over_step_sizes_equals_single_descents():
    rates = jnp.array([0.01, 0.1, 1.0])
    run = lambda lr: descend(quadratic, jnp.ones(2), optax.sgd(lr), 50, record=10, ceiling=1e6)
    together = jax.vmap(run)(rates)
    for i, lr in enumerate(rates):
        alone = run(lr)
        np.testing.assert_allclose(together.risk[i], alone.risk, rtol=1e-12)
        assert together.diverged_at[i] == alone.diverged_at


def test_stochastic_descent_follows_the_batches_and_records_the_full_risk(key):
    x = jnp.arange(6.0)[:, None]
    y = 2 * x[:, 0]
    loss = lambda w, x, y: 0.5 * (x @ w - y) ** 2
    full = lambda w: loss(w, x, y).mean()
    whole = minibatch(loss, x, y, 6)
    path = descend(full, jnp.zeros(1), optax.sgd(0.01), 40, stochastic=whole, key=key)
    np.testing.assert_allclose(
        path.risk, descend(full, jnp.zeros(1), optax.sgd(0.01), 40).risk, rtol=1e-10
    )
    noisy = descend(
        full, jnp.zeros(1), optax.sgd(0.01), 400, stochastic=minibatch(loss, x, y, 2), key=key
    )
    np.testing.assert_allclose(
        noisy.params, 2.0, rtol=1e-3
    )  # interpolation: the noise vanishes at the solution


def test_logarithmic_marks_are_increasing_and_end_where_asked():
    marks = logarithmic(10_000, 30)
    assert marks[0] == 0
    assert marks[-1] == 10_000
    assert (np.diff(marks) > 0).all()


@pytest.mark.parametrize("record", [0, -3, np.array([3, 2]), np.array([0, 99])])
def test_bad_marks_are_refused(record):
    with pytest.raises(UserError, match="record must be"):
        schedule(10, record)


def test_bad_input_is_refused(key):
    with pytest.raises(UserError, match="at least 0"):
        descend(quadratic, jnp.ones(2), optax.sgd(0.1), -1)
    with pytest.raises(UserError, match="random key"):
        descend(quadratic, jnp.ones(2), optax.sgd(0.1), 1, stochastic=lambda w, key: quadratic(w))
    with pytest.raises(UserError, match="between 1 and 6"):
        minibatch(lambda w, x, y: y, jnp.zeros((6, 1)), jnp.zeros(6), 7)


def test_a_line_search_reads_value_and_risk():
    """Armijo: from the largest step downwards, the first that decreases the risk by enough; as by hand."""
    slopes = jnp.array([1.0, 300.0])  # a step of one would diverge
    steep = lambda w: 0.5 * jnp.sum(slopes * w**2)
    search = optax.chain(
        optax.sgd(1.0), optax.scale_by_backtracking_linesearch(30, decrease_factor=0.5)
    )
    path = descend(steep, jnp.ones(2), search, 3)
    w = np.ones(2)
    length = 1.0
    risks = [150.5]
    for _ in range(3):
        slope, length = (
            np.asarray(slopes) * w,
            min(1.5 * length, 1.0),
        )  # each search starts half as long again
        value = risks[-1]
        while (
            0.5 * np.sum(np.asarray(slopes) * (w - length * slope) ** 2)
            > value - 1e-4 * length * slope @ slope
        ):
            length *= 0.5
        w = w - length * slope
        risks.append(0.5 * np.sum(np.asarray(slopes) * w**2))
    np.testing.assert_allclose(path.risk, risks, rtol=1e-10)
    assert np.all(np.diff(path.risk) < 0)


def test_lbfgs_is_the_secant_method_along_one_axis():
    """w − (w − v) r'(w) / (r'(w) − r'(v)), whose first step is along the gradient, of length one at most."""
    risk = lambda w: jnp.cosh(w - 0.5).sum()
    rule = optax.lbfgs(1.0, linesearch=None)
    path = descend(risk, jnp.zeros(1), rule, 6)
    slope = lambda w: np.sinh(w - 0.5)
    before, now = 0.0, -slope(0.0) * min(1.0, 1.0 / abs(slope(0.0)))
    risks = [np.cosh(before - 0.5), np.cosh(now - 0.5)]
    for _ in range(5):
        curvature = (slope(now) - slope(before)) / (now - before)
        before, now = now, now - slope(now) / curvature
        risks.append(np.cosh(now - 0.5))
    np.testing.assert_allclose(path.risk, risks, rtol=1e-10)


def test_independent_coins_have_the_moments_of_their_batches():
    """Mean and second moment of the risk over all 64 batches of six examples, two of them on average."""
    y = jnp.arange(1.0, 7.0)
    risk = minibatch(lambda w, x, y: w * y, jnp.zeros((6, 1)), y, 2, independent=True)
    values = jax.vmap(lambda key: risk(1.0, key))(jax.random.split(jax.random.key(0), 20000))
    p = 1 / 3
    variance = p * (1 - p) * float((y**2).sum()) / 4
    assert abs(float(values.mean()) - 3.5) < 4 * np.sqrt(variance / 20000)
    assert abs(float(values.var()) / variance - 1) < 0.05
