"""Adapters: constants against draws of the step itself, errors of digits against autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest import kit
from steepest.claims.training.lora_rank import experiment, theory
from steepest.claims.training.lora_rank.claim import LoraRank
from steepest.claims.training.lora_rank.point import ROOM
from steepest.claims.training.lora_rank.theory import Batch

RNG = np.random.default_rng(0)
INPUTS = 7
OUTPUTS = 3
EXAMPLES = 4


def batch():
    return experiment.drawn(RNG, INPUTS, OUTPUTS, EXAMPLES, 1.0)


@pytest.mark.parametrize("rank", [1, 3])
def test_constants_by_the_step_itself(rank):
    x, y = batch()
    down = RNG.standard_normal((60_000, rank, INPUTS)) / INPUTS**0.5
    gradient = y @ x.T @ down.swapaxes(1, 2) / EXAMPLES
    sizes = theory.sizes(Batch(x, y))
    for step, law in ((gradient, theory.by_descent), (np.sign(gradient), theory.by_adam)):
        drawn = ((step @ down @ x) ** 2).mean((1, 2))
        error = 4 * drawn.std() / len(drawn) ** 0.5
        assert law(sizes, rank) == pytest.approx(drawn.mean(), abs=error)


def test_one_example_has_rank_one():
    x, y = experiment.drawn(RNG, INPUTS, OUTPUTS, 1, 0.0)
    assert theory.sizes(Batch(x, y)).rank == pytest.approx(1)


def test_outputs_without_an_error_do_not_move_under_adam():
    x, y = batch()
    y[0] = 0
    sizes = theory.sizes(Batch(x, y))
    of_others = theory.sizes(Batch(x, y[1:]))
    assert sizes.c == pytest.approx(of_others.c * 2 / 3)
    assert sizes.e == pytest.approx(of_others.e * 2 / 3)


def test_errors_of_digits_by_autodiff():
    layer = experiment.DigitsLayer(RNG, 12, 6, 5)
    gradient = jax.grad(lambda change: layer.risk(change))(jnp.zeros((6, 5)))
    np.testing.assert_allclose(layer.batch().y, 5 * gradient, atol=1e-12)


def test_steps_of_optax_are_the_formula():
    x, y = batch()
    down = jnp.asarray(RNG.standard_normal((4, INPUTS)))
    ranks = jnp.array([1.0, 3.0])
    risk = experiment.linear(Batch(x, y))
    moved = experiment.first_steps(risk, x, x, OUTPUTS, ranks, down)
    for place, rank in enumerate((1, 3)):
        a = np.asarray(down)[:rank]
        gradient = y @ x.T @ a.T / EXAMPLES
        sgd = (gradient @ a @ x / rank) ** 2
        adam = (np.sign(gradient) @ a @ x / rank) ** 2
        assert float(moved["sgd"][place]) == pytest.approx(sgd.mean())
        assert float(moved["adam"][place]) == pytest.approx(adam.mean())
    np.testing.assert_allclose(moved["sgd"], moved["sgd_elsewhere"])


def test_the_point_has_the_claims_law_and_its_step():
    claim = LoraRank(
        ranks=(3,), inputs=INPUTS, outputs=OUTPUTS, examples=EXAMPLES, draws=4, seeds=3
    )
    point = LoraRank.point.of(claim)
    key = jax.random.key(0)
    setting = point.setting(key)
    law = claim.predict(claim.setting(key))
    predicted = point.predict(setting)
    units = dict(zip(("sgd", "adam"), predicted["units"], strict=True))
    observed = kit.compiled(point.observe)(setting, key)
    shape = (4, ROOM, INPUTS)
    down = jax.random.normal(jax.random.split(key, 3)[0], shape)[:, :3] / INPUTS**0.5
    gradient = setting.y @ setting.x.T @ down.swapaxes(1, 2) / EXAMPLES
    steps = {"sgd": gradient, "adam": np.sign(gradient)}
    line = point.boundaries("ranks", "examples")[0]
    assert np.interp(64, line.y, line.x) == pytest.approx(64 / (1 + 64 / INPUTS), rel=1e-2)
    for name, step in steps.items():
        assert predicted[name] * units[name] == pytest.approx(law[name][0, 0])
        moved = ((step @ down @ setting.x / 3) ** 2).mean()
        assert float(observed[name][0]) == pytest.approx(float(moved), rel=1e-4)
