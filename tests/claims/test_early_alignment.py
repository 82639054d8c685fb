"""The times and rates of early-alignment: closed forms against integrated neurons, and how they are read."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from steepest.claims.implicit_bias.early_alignment.claim import EarlyAlignment
from steepest.claims.implicit_bias.early_alignment.experiment import (
    Setting,
    meeting,
    one_sided,
    polar,
    turned_with_constant,
)
from steepest.claims.implicit_bias.early_alignment.theory import bordered_targets, selection_times
from steepest.nn.networks import Neurons


def made_up(claim, neurons=8):
    """Pairs as the claim draws them, with other starts, and no data beside them."""
    generator = np.random.default_rng(0)
    mus = claim.mus
    second = np.stack([mus, np.sqrt(1 - mus**2), 0 * mus], 1)
    pairs = np.stack([np.broadcast_to([1.0, 0.0, 0.0], second.shape), second], 1)
    w = generator.standard_normal((len(mus), neurons, 3))
    start = Neurons(jnp.asarray(w), jnp.asarray(np.linalg.norm(w, axis=-1)))
    return Setting(np.zeros(0), np.zeros(0), start, pairs, start)


def test_selection_times_are_those_of_a_neuron_that_one_example_pulls():
    """dw/dt = p‖w‖x₁ until ⟨w, x₂⟩ = 0; with an odd n the two examples have unequal shares p."""
    claim = EarlyAlignment(n=5, dimension=3, seeds=4, width=8)
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
    claim = EarlyAlignment(n=6, dimension=3, seeds=3, width=8, least_mu=3e-5)
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


def test_a_neuron_that_sees_its_class_turns_and_grows_at_the_predicted_rate():
    """dw/dt = ‖w‖ x_±/n, integrated by itself; and angles by chords are those of the cosine."""
    claim = EarlyAlignment(n=6, dimension=3, seeds=3, width=8)
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    for place, sign in enumerate((1, -1)):
        total = setting.x[0][setting.y[0] == sign].sum(0)
        grow = lambda t, w, total=total: np.linalg.norm(w) * total / claim.n
        start = np.array([0.3, -0.2, 0.4])
        path = solve_ivp(grow, (0, 40), start, t_eval=[20, 30, 40], rtol=1e-10, atol=1e-14).y.T
        size, cosine, tangent = polar(path, predicted["target"][0, place])
        np.testing.assert_allclose(np.cos(2 * np.arctan(np.exp(tangent))), cosine, atol=1e-12)
        rate = predicted["turning"][0, place]
        np.testing.assert_allclose(np.diff(tangent) / -10, rate, rtol=1e-3)
        np.testing.assert_allclose(2 * np.diff(np.log(size)) / 10, 2 * rate, rtol=1e-3)


def test_lengths_of_features_are_those_of_aligned_neurons():
    """A network whose neurons are class sums, computed by itself; equal examples have equal lengths."""
    claim = EarlyAlignment(n=7, dimension=4, seeds=3, width=8)
    setting = claim.setting(jax.random.key(1))
    predicted = claim.predict(setting)["length"]
    for x, y, lengths in zip(setting.x, setting.y, predicted, strict=True):
        sums = np.stack([x[y > 0].sum(0), x[y < 0].sum(0)])
        features = np.maximum(np.repeat(sums, 3, 0) @ x.T, 0)  # three neurons a class
        size = np.linalg.norm(features, axis=0)
        for mine in (y > 0, y < 0):
            np.testing.assert_allclose(size[mine] / size[mine].mean(), lengths[mine])
            np.testing.assert_allclose(lengths[mine].mean(), 1)


def with_data(x, y, width=6):
    """One set of examples, with starts of one more input."""
    w = np.random.default_rng(3).standard_normal((1, width, x.shape[1] + 1))
    v = np.linalg.norm(w, axis=-1) * np.resize([1.0, -1.0], width)
    start = Neurons(jnp.asarray(w), jnp.asarray(v))
    return Setting(x[None], y[None], start, np.zeros(0), start)


def test_aims_with_a_constant_on_two_opposite_examples():
    """By hand: (1, c) sees (−1, c) from c = 1 on, and then its share α of the pull makes the two orthogonal."""
    setting = with_data(np.array([[2.0, 0.0], [-3.0, 0.0]]), np.array([1.0, -1.0]))
    for c in (0.5, 1.0, 2.0):
        alpha = max(c**2 - 1, 0) / (c**2 + 1)
        aim = np.array([1 + alpha, 0.0, c * (1 - alpha)])
        aim /= np.linalg.norm(aim)
        targets = bordered_targets(setting, [c])[0, 0]
        np.testing.assert_allclose(targets, [aim, aim * [-1, 1, 1]], atol=1e-9)
        if c > 1:
            assert abs(aim @ [-1.0, 0.0, c]) < 1e-12


def test_aims_with_a_constant_are_maxima():
    """Of directions that see all of the class none does better; class sums do worse from c = 1 on."""
    rng = np.random.default_rng(0)
    claim = EarlyAlignment(n=9, dimension=4, seeds=3, width=8)
    setting = claim.setting(jax.random.key(2))
    x = setting.x[0] / np.linalg.norm(setting.x[0], axis=1, keepdims=True)
    y = setting.y[0]
    for c in (0.3, 1.0, 1.5):
        bordered = np.column_stack([x, np.full(9, c)])
        for place, sign in enumerate((1, -1)):
            climbed = lambda w, sign=sign, bordered=bordered: (
                np.maximum(w @ bordered.T, 0) @ (sign * y)
            )
            aim = bordered_targets(setting, [c])[0, 0, place]
            assert (bordered[y == sign] @ aim > 0).all()
            spread = np.concatenate([[1.0] * 500, 10.0 ** -np.linspace(1, 4, 1500)])[:, None]
            tries = aim + spread * rng.standard_normal((2000, 5))
            tries /= np.linalg.norm(tries, axis=1, keepdims=True)
            tries = tries[(tries @ bordered[y == sign].T > 0).all(1)]
            assert len(tries) > 1000
            assert climbed(tries).max() <= climbed(aim) + 1e-12
            total = bordered[y == sign].sum(0)
            worse = climbed(total / np.linalg.norm(total)) < climbed(aim) - 0.1
            assert worse == (c >= 1)


def test_small_networks_with_biases_turn_to_their_aims():
    """Trained by automatic differentiation on data whose classes are not equal; class sums are missed."""
    rng = np.random.default_rng(1)
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    x = y[:, None] * (np.array([1.0, 0.5, 0.0]) + 0.4 * rng.standard_normal((5, 3)))
    setting = with_data(x, y, 40)
    trained = turned_with_constant(setting, (0.3, 1.2), 1e-8)
    targets = bordered_targets(setting, (0.3, 1.2))
    sums = bordered_targets(setting, (0.3, 1.2), (0.0, 1e-9))
    for at in range(2):
        alive = trained["wider_alive"][1][0, at]
        place = np.where(trained["wider_positive"][1][0], 0, 1)
        directions = trained["wider"][1][0, at]
        assert alive.sum() >= 10
        assert (1 - (directions * targets[0, at, place]).sum(1))[alive].max() < 1e-3
    assert (1 - (directions * sums[0, 1, place]).sum(1))[alive].min() > 0.02
