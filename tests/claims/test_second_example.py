"""The times of second-example: closed forms against integrated neurons, and how they are read."""

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from steepest.claims.implicit_bias.second_example.claim import SecondExample
from steepest.claims.implicit_bias.second_example.experiment import Setting, meeting, one_sided
from steepest.claims.implicit_bias.second_example.theory import selection_times
from steepest.nn.networks import Neurons


def made_up(claim, neurons=8):
    """Pairs as the claim draws them, with other starts."""
    generator = np.random.default_rng(0)
    mus = claim.mus
    second = np.stack([mus, np.sqrt(1 - mus**2), 0 * mus], 1)
    pairs = np.stack([np.broadcast_to([1.0, 0.0, 0.0], second.shape), second], 1)
    w = generator.standard_normal((len(mus), neurons, 3))
    start = Neurons(jnp.asarray(w), jnp.asarray(np.linalg.norm(w, axis=-1)))
    return Setting(start, pairs)


def test_selection_times_are_those_of_a_neuron_that_one_example_pulls():
    """dw/dt = p‖w‖x₁ until ⟨w, x₂⟩ = 0; with an odd n the two examples have unequal shares p."""
    claim = SecondExample(n=5, dimension=3, seeds=4, width=8)
    setting = made_up(claim)
    times = selection_times(setting, claim.copies)
    waiting = one_sided(setting)
    assert 4 <= waiting.sum() < waiting.size
    for i, j in zip(*np.nonzero(waiting), strict=True):
        w = np.asarray(setting.start.w)[i, j]
        seen = int((setting.pairs[i] @ w).argmax())
        pull = (0.6, 0.4)[seen] * setting.pairs[i, seen]
        other = setting.pairs[i, 1 - seen]
        meets = lambda t, w, other=other: w @ other
        grow = lambda t, w, pull=pull: np.linalg.norm(w) * pull
        path = solve_ivp(grow, (0, 60), w, events=meets, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(path.t_events[0][0], times[i, j], rtol=1e-6)
    assert (times[~waiting] == 1).all()


def test_waiting_times_grow_like_the_logarithm_of_one_over_mu():
    """Each factor of ten in μ adds log 10 over the share of the example, whatever the start."""
    claim = SecondExample(n=6, dimension=3, seeds=3, width=8, least_mu=3e-5)
    setting = made_up(claim)
    same = setting.start.w.at[:].set(jnp.array([0.5, -0.7, 0.3]))
    times = selection_times(setting._replace(start=Neurons(same, setting.start.v)), claim.copies)
    assert one_sided(setting._replace(start=Neurons(same, setting.start.v))).all()
    added = np.diff(times[::-1], axis=0)[-1] / np.log(claim.mus[1] / claim.mus[0])
    np.testing.assert_allclose(added, 2.0, rtol=2e-3)  # one over the share ½


def test_meetings_are_read_before_the_kink():
    """The least product rises along a line, and steeply after it is positive."""
    times = np.linspace(0, 2, 21) ** 2
    line = 0.1 * (times - 1.234)
    least = np.where(line > 0, 20 * line, line)
    products = np.stack([np.sqrt(np.maximum(1 - least**2, 0)), least], -1)[None, :, None]
    np.testing.assert_allclose(meeting(times, products), 1.234)
    assert np.isinf(meeting(times, -np.abs(products))).all()
