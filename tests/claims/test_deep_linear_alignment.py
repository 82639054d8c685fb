"""The bound that the start puts on second singular values, and the starts, by themselves."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claims.implicit_bias.deep_linear_alignment.claim import (
    DeepLinearAlignment,
    allowed,
    imbalances,
)
from steepest.dynamics import flow
from steepest.nn.losses import exponential, log_margin_risk, margin_risk
from steepest.nn.networks import deep_linear


def test_the_bound_holds_for_any_weights_and_is_sharp_for_balanced_ones():
    """Weyl's inequality does not care where the weights come from, only that the last layer has one row."""
    net = deep_linear((5, 4, 4, 4, 1))
    params = jax.vmap(net.init)(jax.random.split(jax.random.key(0), 50))
    most = allowed(np.asarray(imbalances(params)))  # (layers, seeds)
    second = np.array(
        [np.linalg.svd(np.asarray(layer["w"]), compute_uv=False)[:, 1] for layer in params[:-1]]
    )
    assert (second**2 <= most * (1 + 1e-12)).all()
    assert (second**2 > 0.3 * most).any()  # not idle
    unit = jnp.zeros((1, 4, 4)).at[:, 0, 0].set(2.0)
    balanced = ({"w": unit}, {"w": unit}, {"w": jnp.array([[[2.0, 0.0, 0.0, 0.0]]])})
    assert np.allclose(allowed(np.asarray(imbalances(balanced))), 0)


def test_the_flow_conserves_the_imbalances_and_the_claim_s_starts_satisfy_its_hypothesis():
    claim = DeepLinearAlignment(seeds=3, n=8, dimension=4, width=3)
    setting = claim.setting(jax.random.key(1))
    assert (claim.risks(setting.start, setting.x, setting.y) < np.log(2)).all()
    net = claim.network()
    start = jax.tree.map(lambda leaf: leaf[0], setting.start)
    risks = [
        make(exponential, net.apply, setting.x[0], setting.y[0])
        for make in (margin_risk, log_margin_risk)
    ]
    path = flow(risks[0], start, jnp.array([5.0]), "log-risk", risks[1])
    lift = lambda params: jax.tree.map(lambda leaf: leaf[None], params)
    np.testing.assert_allclose(imbalances(lift(path.params)), imbalances(lift(start)), atol=1e-7)
