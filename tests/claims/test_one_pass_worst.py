"""Problems that take half of the bounds of one pass, against closed forms."""

import numpy as np

from steepest.claims.noise.one_pass_worst.experiment import (
    SMALL,
    hard_for_exponentiated,
    hard_for_sgd,
)


def test_the_hard_problem_of_sgd_takes_half_of_its_bound_exactly():
    """Where the loss is a line, iterates are sums of what the examples before them told."""
    excess = hard_for_sgd(np.random.default_rng(2), 4000, 40, 9, 40)
    law = SMALL * np.sqrt(9 / 40) * (1 + 1 / 40) / 2
    assert abs(excess.mean() - law) < 4 * excess.std() / 4000**0.5


def test_the_hard_problem_of_exponentiated_gradient_in_the_limit_of_many_coordinates():
    """What is learned comes late: nothing after a tenth of the examples, and most of the bound is lost."""
    few = hard_for_exponentiated(np.random.default_rng(3), 30, 30, 2000, 300)
    lean = SMALL * np.sqrt(2 * np.log(4000) / 300)
    np.testing.assert_allclose(few, lean, rtol=0.1)
    all_of_them = hard_for_exponentiated(np.random.default_rng(4), 30, 300, 2000, 300)
    assert 0.7 < all_of_them.mean() / lean < 1
