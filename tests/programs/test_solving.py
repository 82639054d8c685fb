"""What is asked of the solver when it gives up."""

from types import SimpleNamespace

import cvxpy as cp
import pytest

from steepest.core.errors import UserError
from steepest.programs._solving import solve_tightly


def gives_up_below(tolerance):
    """A problem whose solver fails where more is asked, and what was asked."""
    asked = []

    def solve(*, tol_gap_abs, **settings):
        asked.append(tol_gap_abs)
        if tol_gap_abs < tolerance:
            raise cp.SolverError("failed")

    return SimpleNamespace(solve=solve, status=cp.OPTIMAL), asked


def test_less_is_asked_until_it_does_not_give_up():
    problem, asked = gives_up_below(0.99e-10)
    solve_tightly(problem)
    assert asked == [1e-12, 1e-11, 1e-10]
    easy, once = gives_up_below(0.0)
    solve_tightly(easy)
    assert once == [1e-12]


def test_in_the_end_a_sentence_says_so():
    problem, _ = gives_up_below(1.0)
    with pytest.raises(UserError, match="expected a solution, got 'failed'"):
        solve_tightly(problem)
