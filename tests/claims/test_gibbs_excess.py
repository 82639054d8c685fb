"""gibbs-excess: its expansion against integrals."""

import numpy as np
import pytest

from steepest.claims.noise.gibbs_excess.rugged import rugged_bound, rugged_excess, rugged_second


def test_the_excess_on_the_rugged_parabola_is_expanded_by_laplace():
    betas = np.array([100.0, 200.0, 400.0])
    seconds = [(rugged_excess(beta) - 1 / (2 * beta)) * beta**2 for beta in betas]
    # what is left of order 1/β is taken out by two of them
    assert 2 * seconds[2] - seconds[1] == pytest.approx(rugged_second(), rel=2e-3)
    assert rugged_excess(7.0, 0.0) == pytest.approx(1 / 14, rel=1e-9)
    assert (rugged_bound(betas) > 3 * np.array([rugged_excess(beta) for beta in betas])).all()
