"""Quantiles of the laws behind the intervals, and the levels that they may have."""

from steepest.core.errors import UserError


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal variable is within ±z with this probability.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    check_level(level)
    # imported here, since who reads a claim's file needs no SciPy
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def student_quantile(level: float, freedom: int) -> float:
    """Return t such that a Student variable with these degrees of freedom is within ±t with this probability.

    >>> round(student_quantile(0.95, 9), 4)
    2.2622
    """
    check_level(level)
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def check_level(level: float) -> None:
    """Refuse a level that is no probability between 0 and 1.

    Raises:
        UserError: a level outside of (0, 1), such as 95 in place of 0.95.
    """
    if not 0 < level < 1:
        raise UserError(
            f"the level of an interval is a probability between 0 and 1, such as 0.95; got {level:g}"
        )
