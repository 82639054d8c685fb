"""Medians of small groups, for repetitions of which a few are far from the others."""

import xarray

from steepest.core.errors import UserError
from steepest.core.signatures import checked


@checked
def medians(values: xarray.DataArray, of: int, over: str, into: str) -> xarray.DataArray:
    """Return the median of each group of consecutive repetitions; entries that are not numbers are left out.

    One repetition in fifteen that is far off moves a mean and widens its interval. In a group of three it is rarely
    the middle one. Groups are as independent as their repetitions are.

    Args:
        values: with repetitions along one axis.
        of: repetitions of a group, a divisor of their number.
        over: the axis of the repetitions.
        into: the name of the axis of the groups.

    Raises:
        UserError: repetitions that cannot be divided into groups of this size.

    >>> medians(xarray.DataArray([3.0, 3.0, 5.0, 4.0, 3.0, 3.0], dims="seed"), 3, "seed", "draw").values.tolist()
    [3.0, 3.0]
    """
    repetitions = values.sizes[over]
    if of < 1 or repetitions % of:
        raise UserError(
            f"groups of the same size: expected a number of repetitions that is a multiple of {of}, got {repetitions}"
        )
    groups = values.coarsen({over: of}).median()
    return groups.rename({over: into})
