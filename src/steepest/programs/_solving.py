"""The solver and the tolerances of every cvxpy problem here."""

import warnings
from typing import Any

from steepest.core.errors import UserError

# rounding can keep the solver from what is asked, and it gives up then
_TOLERANCES = (1e-12, 1e-11, 1e-10, 1e-9)
"""From the first on until the solver does not give up."""


def solve_tightly(problem: Any) -> None:
    """Solve a cvxpy problem with Clarabel, as exactly as float64 allows.

    The tolerance may be out of reach; cvxpy's warning about that is dropped, because every caller measures its own
    duality gap and reports it.

    Raises:
        UserError: if the solver gives up.

    >>> import cvxpy as cp
    >>> z = cp.Variable()
    >>> solve_tightly(cp.Problem(cp.Minimize(cp.square(z - 2))))
    >>> round(float(z.value), 6)
    2.0
    """
    import cvxpy as cp

    status = ""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        for tolerance in _TOLERANCES:
            settings = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
            try:
                problem.solve(solver=cp.CLARABEL, **settings)
                status = problem.status
                break
            except cp.SolverError as error:
                status = str(error)
    if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise UserError(
            f"convex program: expected a solution, got {status!r} from Clarabel; the inputs may differ too much in "
            "size, try standardized features"
        )
