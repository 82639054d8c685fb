"""The constants of descent-telescope, by a grid and on a risk that is almost linear."""

import numpy as np
import pytest

from steepest.claims.descent.descent_telescope.claim import DescentTelescope, _slope_constant


def test_the_constant_of_the_logistic_loss():
    u = np.linspace(-20, 20, 400_001)
    slope = 1 / (1 + np.exp(u))
    loss = np.log1p(np.exp(-u))
    assert _slope_constant() == pytest.approx((slope**2 / loss).max(), rel=1e-9)


def test_the_convex_bound_is_nearly_met_where_the_risk_is_nearly_linear():
    """With a constant gradient the ratio for W̄ = W_k is (2k − 1)/(k − 1), at t = 1."""
    x = np.ones((2, 1))
    y = np.ones(2)
    claim = DescentTelescope(steps=5, slowdown=1e6)
    assert claim.regression(x, y) == pytest.approx([3, 5 / 2, 7 / 3, 9 / 4], rel=1e-4)
