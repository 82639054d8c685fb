"""What imbalance-of-two-numbers rests on: its starts, and what descent loses."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.catalogue import load
from steepest.claims.descent.imbalance_of_two_numbers.experiment import share_lost, start


@pytest.mark.parametrize("delta", [0.0, 1.0, 3.0, 10.0])
def test_starts_are_as_described(delta):
    u, v = start(delta, 0.1)
    assert u * v == pytest.approx(0.1)
    assert u**2 - v**2 == pytest.approx(delta)


@pytest.mark.parametrize(("delta", "target", "product"), [(1.0, 1.0, 0.1), (5.0, 0.5, 0.2)])
def test_what_descent_loses_is_what_the_flow_would_in_first_order(delta, target, product):
    """The integral over errors against one over time, along SciPy's flow of u and v."""
    u = np.sqrt((np.hypot(delta, 2 * product) + delta) / 2)
    speed = lambda _, x: [x[1] * (target - x[0] * x[1]), x[0] * (target - x[0] * x[1])]
    path = solve_ivp(speed, (0, 40), [u, product / u], rtol=1e-9, atol=1e-12, dense_output=True)
    time = np.linspace(0, 40, 40_001)
    a, b = path.sol(time)
    wanted = np.trapezoid((target - a * b) ** 2, time)
    fields = {"targets": (target,), "product": product, "rates": (1.0,)}
    claim = load("imbalance-of-two-numbers")(imbalances=(0.0, delta), **fields)
    share = claim.predict(None)["scalar_loss"][0, 0]
    assert share == pytest.approx(wanted, rel=1e-4)
    lost = share_lost(np.array([delta]), product, target, np.array([1e-4, 5e-5]), 200_000)
    assert np.allclose(lost / [1e-4, 5e-5], share, rtol=1e-3)
