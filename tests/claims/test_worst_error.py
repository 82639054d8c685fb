"""Worst errors of students: the kernel by automatic differentiation, searches by many points, training by optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.claims.features.worst_error.claim import WorstError
from steepest.claims.features.worst_error.experiment import Lessons, errors, sphere, teach, train
from steepest.claims.features.worst_error.theory import kernel_errors, tangent_kernel
from steepest.core.checks import Verdict
from steepest.core.errors import UserError

RNG = np.random.default_rng(0)


def network(layers, x):
    return jax.nn.relu(x @ layers[0].T) @ layers[1]


def test_the_tangent_kernel_is_that_of_a_wide_network():
    """In NTK scaling, Gaussian weights: v_j relu⟨w_j, x⟩/√m."""
    width = 20_000
    x = sphere(RNG, 3, 4)
    layers = (
        jnp.asarray(RNG.standard_normal((width, 4))),
        jnp.asarray(RNG.standard_normal(width)),
    )
    jacobian = jax.jacrev(lambda theta: network(theta, jnp.asarray(x)) / np.sqrt(width))(layers)
    rows = np.concatenate([np.asarray(part).reshape(3, -1) for part in jacobian], 1)
    assert np.allclose(rows @ rows.T, tangent_kernel(x, x), atol=0.04)


def test_a_target_in_the_span_of_the_kernel_is_learned_exactly():
    x = sphere(RNG, 20, 3)
    target = lambda z: tangent_kernel(z, x) @ np.arange(20.0)
    worst, mean = kernel_errors(RNG, x, target)
    assert worst < 1e-3
    assert mean < worst


def test_the_worst_error_of_the_kernel_is_that_of_very_many_points():
    """On the circle a fine grid finds every maximum."""
    x = sphere(RNG, 8, 2)
    teacher = sphere(RNG, 4, 2)
    signs = np.array([1.0, -1.0, 1.0, 1.0])
    target = lambda z: np.maximum(z @ teacher.T, 0) @ signs
    angles = 2 * np.pi * np.arange(40_000) / 40_000
    grid = np.stack([np.cos(angles), np.sin(angles)], 1)
    weights = np.linalg.solve(tangent_kernel(x, x) + 1e-9 * np.eye(8), target(x))
    residual = target(grid) - tangent_kernel(grid, x) @ weights
    worst, mean = kernel_errors(RNG, x, target)
    assert worst == pytest.approx(np.abs(residual).max(), rel=1e-3)
    assert mean == pytest.approx(np.sqrt((residual**2).mean()), rel=0.05)


def test_the_worst_error_of_a_student_by_random_points_and_local_steps():
    points = sphere(RNG, 4000, 4)
    for _ in range(5):
        student = (RNG.standard_normal((10, 4)), RNG.standard_normal(10))
        teacher = (sphere(RNG, 3, 4), np.array([1.0, -1.0, 1.0]))
        worst, mean = errors(points, student, teacher)
        residual = lambda z, s=student, t=teacher: np.abs(
            np.maximum(z @ s[0].T, 0) @ s[1] - np.maximum(z @ t[0].T, 0) @ t[1]
        )
        many = sphere(RNG, 100_000, 4)
        assert mean == pytest.approx(np.sqrt((residual(many) ** 2).mean()), rel=0.05)
        assert worst >= residual(many).max()
        near = many[np.argmax(residual(many))] + 0.05 * RNG.standard_normal((50_000, 4))
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        assert worst == pytest.approx(residual(near).max(), rel=0.01)


def test_a_student_that_is_the_teacher_makes_no_error():
    teacher = (sphere(RNG, 3, 4), np.array([1.0, -1.0, 1.0]))
    assert np.allclose(errors(sphere(RNG, 100, 4), teacher, teacher), 0, atol=1e-12)


def test_teachers_are_networks():
    x = sphere(RNG, 7, 4)
    teacher = sphere(RNG, 5, 4)
    signs = np.array([1.0, -1.0, 1.0, 0.0, 0.0])
    slow = [
        sum(s * max(0.0, w @ point) for s, w in zip(signs, teacher, strict=True)) for point in x
    ]
    assert np.allclose(teach(x, teacher, signs), slow)


def test_narrow_students_in_a_bank_are_trained_as_alone():
    """Zero neurons stay zero, the student starts at zero, and Adam's steps are those of optax."""
    x = sphere(RNG, 1, 12, 3)
    lessons = Lessons(x, np.zeros((1, 1, 3)), np.zeros((1, 1, 1)))
    labels = RNG.standard_normal((1, 1, 12))
    start = train(np.random.default_rng(5), lessons, labels, (4, 10), 0)
    hidden, last = train(np.random.default_rng(5), lessons, labels, (4, 10), 30)
    assert not last[0, 0, 0, 4:].any()
    assert not hidden[0, 0, 0, 4:].any()
    for place, width in enumerate((4, 10)):
        layers = (
            jnp.asarray(start[0][0, 0, place, :width]),
            jnp.asarray(start[1][0, 0, place, :width]),
        )
        assert np.abs(network(layers, x[0])).max() < 1e-6
        rule = optax.adam(optax.cosine_decay_schedule(0.06 / np.sqrt(width), 30))
        state = rule.init(layers)
        risk = lambda theta: ((network(theta, x[0]) - labels[0, 0]) ** 2).mean()
        for _ in range(30):
            updates, state = rule.update(jax.grad(risk)(layers), state)
            layers = optax.apply_updates(layers, updates)
        assert np.allclose(layers[0], hidden[0, 0, place, :width], atol=1e-3)
        assert np.allclose(layers[1], last[0, 0, place, :width], atol=1e-3)


def test_students_that_hold_both_teachers_are_out_of_range_and_pairs_are_even():
    claim = WorstError(widths=(64, 128))
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))
    with pytest.raises(UserError, match="even"):
        WorstError(widths=(7, 32))
    with pytest.raises(UserError, match="increasing"):
        WorstError(widths=(32, 8))


def test_the_judge_refutes_wrong_laws():
    claim = WorstError(widths=(8, 32), n=40, steps=10, seeds=6)
    setting = claim.setting(jax.random.key(0))
    law = claim.predict(setting)
    noise = 1 + 0.02 * RNG.standard_normal((6, 2, 2))
    direction = np.array([[0.5, 1.0], [2.0, 1.0]])
    worst = law["limit"][:, None] * direction * noise
    mean = worst / law["ratio"][:, None]
    axes = "seed teacher width"
    observed = claim.observe(setting, jax.random.key(1)).replace(
        worst=(axes, worst), root_mean_square=(axes, mean)
    )
    fails = lambda **wrong: {
        check.id
        for check in claim.checks(law.replace(**wrong), observed)
        if check.verdict is Verdict.FAILS
    }
    assert not fails()
    assert fails(limit=("teacher", law["limit"] * 1.5)) == {"limit"}
    assert fails(ratio=("teacher", law["ratio"] * 1.5)) == {"ratio"}
    said = np.array([[0.0, 1.0], [0.0, 1.0]])
    assert fails(worst_trend=("teacher end", said), mean_trend=("teacher end", 1 - said)) == {
        "few_mean",
        "many_worst",
    }
