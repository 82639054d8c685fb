"""What the three-level claim rests on: the share of the class part under a common feature, and that errors are seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest.catalogue import load
from steepest.claims.curvature.three_level_hessian import ranks
from steepest.engine.run import run
from steepest.measurement.quantities import three_levels


@pytest.mark.parametrize("classes", [3, 5, 10])
def test_the_class_part_has_this_share_of_an_outlier(classes):
    """One feature for all classes, wrong labels equally likely: C² to (C − 1)² − 1, hence C/(2(C − 1))."""
    kind = load("three-level-hessian")
    y = np.arange(classes)
    u = np.linalg.qr(np.c_[np.ones(classes), np.eye(classes)[:, :-1]])[0][
        :, 1
    ]  # a direction orthogonal to ones
    # p_i − e_c' is e_i − e_c' up to the probability of an error, which is 1e-12 here
    sharp = three_levels(lambda u: u.sum(0), 30.0 * np.eye(classes), y)
    of_classes, of_cross = ((rows @ u) ** 2 for rows in (sharp.classes, sharp.cross))
    share = of_classes.sum() / (of_classes.sum() + of_cross.sum())
    assert share == pytest.approx(float(kind(classes=classes).predict(None)["share"]), rel=1e-6)


def test_a_wrong_decomposition_fails(monkeypatch):
    """With class means of the other convention the parts no longer add up, and the claim says so."""
    module = __import__(
        "steepest.claims.curvature.three_level_hessian.experiment", fromlist=["three_levels"]
    )
    wrong = lambda vjp, outputs, labels: three_levels(vjp, outputs, (labels + 1) % 3)
    monkeypatch.setattr(module, "three_levels", wrong)
    small = load("three-level-hessian")(classes=3, seeds=3, n=60, width=8, depth=2, steps=200)
    checks = run(small).checks
    assert next(c for c in checks if c.name.startswith("sum of the parts")).verdict.value == "fails"
    assert jnp.isfinite(checks[0].measured)


def single(seed):
    """Return one small network, without the first axis."""
    networks = ranks.draw_small(np.random.default_rng(seed))
    return ranks.SmallNetworks(*(part[0] for part in networks))


@pytest.mark.parametrize("squared", [False, True])
def test_factor_and_coupling_are_those_of_automatic_differentiation(squared):
    network = single(12)
    classes = 3
    inputs = 9
    few = network._replace(x=network.x[:inputs], labels=network.labels[:inputs])
    with jax.enable_x64(True):
        flat, unravel = ravel_pytree((jnp.array(network.first), jnp.array(network.last[:classes])))

        def outputs(w):
            first, last = unravel(w)
            return jax.nn.relu(few.x @ first.T) @ last.T

        def losses(out):
            hot = jax.nn.one_hot(few.labels, classes)
            if squared:
                return ((out - hot) ** 2).sum() / 2
            return (jax.nn.logsumexp(out, axis=1) - (out * hot).sum(1)).sum()

        hessian = jax.jit(jax.hessian(lambda w: losses(outputs(w))))(flat)
        jacobian = np.asarray(jax.jit(jax.jacrev(outputs))(flat)).reshape(inputs * classes, -1)
        inner = np.asarray(jax.jit(jax.hessian(losses))(outputs(flat)))
    inner = inner.reshape(inputs * classes, inputs * classes)
    rows, wrong = ranks.factor(few, classes, squared=squared)
    rows = rows.reshape(inputs * classes, -1)
    np.testing.assert_allclose(rows.T @ rows, jacobian.T @ inner @ jacobian, atol=1e-11)
    whole = rows.T @ rows + ranks.coupling(few, classes, wrong)
    np.testing.assert_allclose(whole, hessian, atol=1e-11)


def test_ranks_are_as_derived_and_not_as_printed():
    """By singular values, which reach smaller ones than eigenvalues do."""
    measured = ranks.measure_ranks(ranks.draw_small(np.random.default_rng(14)))
    network = single(14)
    for label, classes in enumerate(ranks.LABELS):
        rows, wrong = ranks.factor(network, classes, squared=False)
        for image, n in enumerate(ranks.IMAGES):
            law = ranks.gauss_newton_rank(n, classes)
            first = rows[:n].reshape(n * classes, -1)
            assert np.linalg.matrix_rank(first, tol=1e-10) == law
            assert law > min(n, 100)  # where the notes have n and the number of weights
            assert (measured["gauss_rank"][:, image, label] == law).all()
        hessian = first.T @ first + ranks.coupling(network, classes, wrong)
        assert np.linalg.matrix_rank(hessian, tol=1e-10) == ranks.hessian_rank(classes)
        assert (measured["hessian_rank"][:, label] == ranks.hessian_rank(classes)).all()


def test_what_bounds_the_ranks_leaves_the_probabilities():
    """Two directions for each neuron that G does not see; the Hessian sees the first of them."""
    network = single(15)
    classes = 3
    rows, wrong = ranks.factor(network, classes, squared=False)
    rows = rows.reshape(-1, rows.shape[-1])
    coupled = ranks.coupling(network, classes, wrong)
    for j in range(ranks.NEURONS):
        into = np.zeros_like(network.first)
        into[j] = network.first[j]
        out_of = np.zeros((classes, ranks.NEURONS))
        out_of[:, j] = -network.last[:classes, j]
        scaled = np.concatenate([into.ravel(), out_of.ravel()])
        added = np.concatenate([0 * into.ravel(), (out_of != 0).ravel()])
        assert np.abs(rows @ scaled).max() < 1e-12
        assert np.abs(rows @ added).max() < 1e-12
        assert np.abs(coupled @ added).max() < 1e-10
        assert np.abs(coupled @ scaled).max() > 0.1
