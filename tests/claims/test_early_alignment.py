"""The rates of early-alignment: closed forms against integrated neurons."""

import jax
import numpy as np
from scipy.integrate import solve_ivp

from steepest.claims.implicit_bias.early_alignment.claim import EarlyAlignment
from steepest.claims.implicit_bias.early_alignment.experiment import polar


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
