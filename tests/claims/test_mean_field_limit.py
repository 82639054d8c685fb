"""The limit by another solver, its constants by redrawn masses and shares, networks by hand, and refused fields."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.catalogue import load
from steepest.claims.features.mean_field_limit.experiment import (
    KERNEL,
    Setting,
    draw_examples,
    examples_for,
    on_sphere,
    paired_start,
    risk_of,
    risk_of_draws,
    slope_of_square,
    train_all,
)
from steepest.claims.features.mean_field_limit.theory import (
    limit_of,
    noise_of_labels,
    relative_difference,
)
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready

RNG = np.random.default_rng(0)
DATA = draw_examples(jax.random.key(3), 5, 1.4, 0.5)
TIMES = (0.4, 1.5)


@pytest.fixture(scope="module")
def limit():
    with jax.enable_x64(True):
        return limit_of(DATA.x, DATA.y, TIMES)


def follow(w, times, rtol=1e-8):
    """Return outputs and movement of neurons of equal mass by DOP853, from the definition of the flow."""
    start = w

    def slope(_, flat):
        w = flat.reshape(start.shape)
        total = np.zeros_like(w)
        error = np.tanh(w @ DATA.x.T).mean(0) - DATA.y
        for e, x in zip(error, DATA.x, strict=True):
            total -= e * x / np.cosh(w @ x)[:, None] ** 2 / len(DATA.y)
        return total.ravel()

    path = solve_ivp(slope, (0, times[-1]), start.ravel(), "DOP853", times, rtol=rtol, atol=1e-9)
    ws = path.y.T.reshape(len(times), *start.shape)
    return np.tanh(ws @ DATA.x.T).mean(1), np.sqrt(((ws - start) ** 2).sum(-1).mean(-1))


def test_the_limit_is_where_wide_networks_are(limit):
    """20 000 neurons, mirrored through zero and turned by a right angle, are 0.003 off by themselves."""
    w = RNG.normal(size=(20_000, 2))
    outputs, movement = follow(np.concatenate([w, -w]), TIMES, 1e-6)
    np.testing.assert_allclose(outputs, limit.outputs, atol=0.015)
    np.testing.assert_allclose(movement, limit.movement, rtol=0.015)


def test_lattices_half_a_spacing_apart_agree(limit):
    with jax.enable_x64(True):
        other = limit_of(DATA.x, DATA.y, TIMES, 0.5)
    np.testing.assert_allclose(other.outputs, limit.outputs, atol=1e-3)
    assert relative_difference(limit, other, 1000) < 0.03
    assert relative_difference(limit, limit._replace(start=limit.start * 1.1), 1000) > 0.09
    assert relative_difference(limit, limit._replace(noise=limit.noise * 1.1), 1000) > 0.09


def test_the_constant_of_the_start_is_that_of_networks(limit):
    """400 networks of 300 neurons by another solver: the standard error of a mean square is 6 %."""
    squares = []
    for _ in range(400):
        outputs, _ = follow(RNG.normal(size=(300, 2)), TIMES, 1e-5)
        squares.append(300 * ((outputs - limit.outputs) ** 2).mean(1))
    squares = np.array(squares)
    error = squares.std(0) / np.sqrt(len(squares))
    assert np.all(np.abs(squares.mean(0) - limit.start) < 4 * error)
    assert np.all(np.abs(squares.mean(0) - limit.alone) > 4 * error)


def test_at_the_start_neurons_are_independent():
    """F(0) = mean over examples of var tanh⟨w, x⟩, by quadrature on the line: ⟨w, x⟩ ~ N(0, ‖x‖²)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    expected = (weights / weights.sum()) @ np.tanh(1.4 * nodes) ** 2
    with jax.enable_x64(True):
        early = limit_of(DATA.x, DATA.y, (1e-4,))
    assert early.start[0] == pytest.approx(expected, rel=1e-3)
    assert early.alone[0] == pytest.approx(expected, rel=1e-3)


def test_early_noise_in_closed_form():
    """G → t · mean over examples of var_j of K(x, x_j) y_j, with K = ⟨x, x_j⟩ E σ'(⟨w, x⟩) σ'(⟨w, x_j⟩)."""
    w = RNG.normal(size=(400_000, 2))
    active = 1 / np.cosh(w @ DATA.x.T) ** 2
    kernel = (DATA.x @ DATA.x.T) * (active.T @ active) / len(w)
    expected = (kernel * DATA.y).var(1).mean()
    with jax.enable_x64(True):
        early = limit_of(DATA.x, DATA.y, (1e-3,))
    assert early.noise[0] / 1e-3 == pytest.approx(expected, rel=0.02)


def test_the_constant_of_the_noise_is_that_of_small_steps(limit):
    """400 runs of SGD by hand on 400 neurons, against descent on the population: the error of the mean is 7 %."""
    lr, runs, N = 0.01, 400, 400
    start = RNG.normal(size=(N, 2))
    w = np.broadcast_to(start, (runs, N, 2)).copy()
    whole, _ = follow(start, TIMES)
    squares = []
    for step in range(round(TIMES[-1] / lr)):
        drawn = RNG.integers(len(DATA.y), size=runs)
        x, y = DATA.x[drawn], DATA.y[drawn]
        active = np.tanh((w * x[:, None]).sum(-1))
        w -= lr * ((1 - active**2) * (active.mean(1) - y)[:, None])[..., None] * x[:, None]
        if step + 1 in (round(TIMES[0] / lr), round(TIMES[-1] / lr)):
            outputs = np.tanh(w @ DATA.x.T).mean(1)
            squares.append(((outputs - whole[len(squares)]) ** 2).mean(1) / lr)
    squares = np.array(squares)
    error = squares.std(1) / np.sqrt(runs)
    assert np.all(np.abs(squares.mean(1) - limit.noise) < 4 * error + 0.05 * limit.noise)


def test_risks_have_the_slopes_of_neurons():
    """−∇ of the risk in the time of a width is −(1/n) Σ e σ' x in the mean-field scaling, √N times in the kernel's."""
    w = jnp.asarray(RNG.normal(size=(7, 2)))
    active = np.tanh(np.asarray(w) @ DATA.x.T)
    for power in (1.0, KERNEL):
        error = active.sum(0) / 7**power - DATA.y
        slope = -((1 - active**2) * error) @ DATA.x / len(DATA.y) * 7 ** (power - 1)
        risk = partial(risk_of, data=DATA, power=power)
        np.testing.assert_allclose(-jax.grad(risk)((w, w))[1], slope, rtol=1e-5, atol=1e-6)


def test_drawn_risks_are_the_risk_in_the_mean():
    networks = tuple(jnp.asarray(RNG.normal(size=(N, 2))) for N in (4, 9))
    data = Setting(*map(jnp.asarray, DATA))
    draw = jax.jit(jax.vmap(lambda key: risk_of_draws(networks, key, data)))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(0), 4000)))
    error = drawn.std() / np.sqrt(len(drawn))
    assert abs(drawn.mean() - float(risk_of(networks, DATA))) < 4 * error
    # each network draws its own example
    assert len(np.unique(drawn.round(6))) > len(DATA.y)


def test_flows_are_those_of_another_solver_and_narrow_steps_are_near_them():
    with jax.enable_x64(True):
        trained = train_all(
            DATA, jax.random.key(1), widths=(6,), times=TIMES, rates=(0.05,), seeds=2, starts=1
        )
        # untrained networks of the same draws
        key = jax.random.split(jax.random.key(1), 2)[0]
        start = np.asarray(jax.random.normal(jax.random.fold_in(key, 6), (6, 2)))
    outputs, movement = follow(start, TIMES)
    values = {name: values for name, (_, values) in trained.items()}
    np.testing.assert_allclose(values["flows"][0, 0, :, 0], outputs, atol=1e-3)
    np.testing.assert_allclose(values["moved"][0, 0, :, 0], movement, rtol=1e-2)
    np.testing.assert_allclose(values["whole"][0, 0, :, 0], outputs, atol=0.02)
    assert values["sgd"].shape == (2, 1, 1, 2, 1, 5)
    assert np.abs(values["sgd"][0, 0, 0, :, 0] - values["whole"][0, 0, :, 0]).max() > 0.005


def test_examples_are_on_a_circle_with_an_odd_target():
    data = draw_examples(jax.random.key(0), 9, 1.2, 0.3)
    np.testing.assert_allclose(np.linalg.norm(data.x, axis=1), 1.2)
    np.testing.assert_allclose(data.y, 0.3 * (np.tanh(2 * data.x) @ [1, -1]))
    assert isinstance(data, Setting)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"times": (1.0, 1.0)}, "times must increase"),
        ({"times": (1e5,), "rates": (0.1,)}, "more than 100000 steps"),
        ({"times": (0.25,), "rates": (0.1,)}, "a whole number of steps"),
        ({"dimensions": (2, 4)}, "must be three or more"),
        ({"neurons": (5, 8)}, "even"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("mean-field-limit", changes=fields)


@pytest.mark.parametrize(
    "fields", [{"widths": (3, 5)}, {"rates": (0.5, 0.25)}, {"times": (40.0,), "rates": (0.1, 0.2)}]
)
def test_out_of_range(fields):
    tiny = load("mean-field-limit").tiny
    asked = ready("mean-field-limit", "tiny", changes={**tiny, **fields})
    assert execute(asked).verdict == "out-of-range"


def test_slopes_by_hand_are_those_of_automatic_differentiation():
    w = RNG.normal(size=(3, 6, 4))
    x = RNG.normal(size=(3, 4))
    y = RNG.normal(size=3)
    square = lambda w, x, y: 6 * 0.5 * (jnp.tanh(w @ x).mean() - y) ** 2
    with jax.enable_x64(True):
        expected = jax.vmap(jax.grad(square))(w, x, y)
    np.testing.assert_allclose(slope_of_square(w, x, y), expected, rtol=1e-9, atol=1e-12)


def mean_products_of_slopes():
    """Return cosines u of two inputs, and E σ'(z)σ'(z') of tanh where z and z' correlate by u, by 40 × 40 nodes."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(40)
    mass = mass / mass.sum()
    u = np.linspace(-1, 1, 201)
    correlated = u[:, None, None] * nodes[:, None] + np.sqrt(1 - u**2)[:, None, None] * nodes
    slope = lambda z: 1 / np.cosh(z) ** 2
    return u, np.einsum("i,j,i,uij->u", mass, mass, slope(nodes), slope(correlated))


@pytest.mark.parametrize("dimension", [3, 9])
def test_noise_of_labels_is_that_of_a_sampled_kernel(dimension):
    """tr K(1 − e^(−2Kt)) by eigenvalues of the kernel at 2000 examples, its means over neurons by 40 × 40 nodes."""
    x = on_sphere(RNG, (2000,), dimension).astype(float)
    u, slopes = mean_products_of_slopes()
    products = x @ x.T
    kernel = products * np.interp(products / dimension, u, slopes)
    values = np.linalg.eigvalsh(kernel / len(x))
    expected = [0.18 * (values * -np.expm1(-2 * values * t)).sum() for t in (0.5, 2.0)]
    # the largest eigenvalues of a sample are off by √(1/2000) each, their mean by the share of D in the sample
    np.testing.assert_allclose(
        noise_of_labels([dimension], (0.5, 2.0), 0.6)[0], expected, rtol=0.02
    )


def test_early_and_late_noise_in_closed_form():
    """Early it is τ² t · E K(x, x')², late τ²/2 · E K(x, x) = τ²/2 · D E σ'² but for degrees that are slow."""
    x = on_sphere(RNG, (400_000, 2), 5).astype(float)
    product = (x[:, 0] * x[:, 1]).sum(-1)
    u, slopes = mean_products_of_slopes()
    square = ((product * np.interp(product / 5, u, slopes)) ** 2).mean()
    early, late = noise_of_labels([5], (1e-4, 1e7), 1.0)[0]
    assert early == pytest.approx(1e-4 * square, rel=0.01)
    assert late == pytest.approx(2.5 * slopes[-1], rel=2e-3)


def test_paired_starts_put_out_nothing_and_examples_are_on_the_sphere():
    w = paired_start(RNG, 2, 6, 5)
    x = on_sphere(RNG, (2,), 5)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 5**0.5, rtol=1e-6)
    np.testing.assert_allclose(np.tanh((w @ x[:, :, None])[..., 0]).sum(1), 0, atol=1e-6)
    assert examples_for(8, 2.0) == 80
