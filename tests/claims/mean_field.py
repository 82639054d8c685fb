"""What tests of claims on mean-field networks share: examples, and flows of finite networks by another solver."""

import jax
import numpy as np
from scipy.integrate import solve_ivp

from steepest.claims.features._mean_field import draw_examples

DATA = draw_examples(jax.random.key(3), 5, 1.4, 0.5)
TIMES = (0.4, 1.5)


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
