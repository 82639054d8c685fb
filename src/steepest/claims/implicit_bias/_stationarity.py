"""Whether a direction is stationary for ``ℓ_{2/L}`` under margins of one: what two claims ask of depth L.

Coordinates θ of the norm are weights β, or their Fourier transform. On the support of a stationary point the pull
``Σ_i q_i y_i x_i`` has the sign of θ and a modulus in proportion to ``|θ|^{2/L − 1}``, the derivative of ``|θ|^{2/L}``,
and its multipliers q stay on the margin (Lyu and Li 2020; Gunasekar, Lee, Soudry and Srebro 2018).
"""

import numpy as np
import xarray

SUPPORT = 0.01  # entries above this part of the largest count for exponents


def kkt_residual(
    order: xarray.DataArray,
    weights: xarray.DataArray,
    pull: xarray.DataArray,
    off_margin: xarray.DataArray,
    along: str,
) -> xarray.DataArray:
    """Return the larger of the distance from stationarity and the weight off the margin.

    The first is the sine of the angle between a split of the weights evenly over L factors of modulus |β|^{1/L} and the
    gradient of the margins there.

    Args:
        order: of the quasi-norm, 2/L.
        weights: real or complex coordinates.
        pull: ``Σ q y x`` in the same coordinates.
        off_margin: ``Σ q (u/min u − 1)``.
        along: the axis of coordinates.
    """
    # of conjugate phase, so that pull · sign is real where the pull has the phase of β
    size = abs(weights)
    sign = np.conj(weights) / size.where(size > 0, 1.0)
    factor = size ** (order / 2)
    # by one factor of modulus |β|^(1/L), β has the derivative |β|^((L − 1)/L) of the others
    gradient = pull * sign * size ** (1 - order / 2)
    length = lambda values: (abs(values) ** 2).sum(along, skipna=False) ** 0.5
    # KKT: the factors are in proportion to the gradient of the margins where the cosine is one
    cosine = (factor * gradient.real).sum(along, skipna=False) / (length(factor) * length(gradient))
    sine = (1 - cosine**2).clip(min=0) ** 0.5
    return xarray.concat([sine, off_margin], "part").max("part", skipna=False)


def slope_on_support(
    weights: xarray.DataArray, pull: xarray.DataArray, along: str
) -> xarray.DataArray:
    """Return the slope of log|pull| in log|β| over the support; NaN where that has one size or one entry only.

    Args:
        weights: real or complex coordinates.
        pull: ``Σ q y x`` in the same coordinates.
        along: the axis of coordinates.
    """
    size = abs(weights)
    on = size > SUPPORT * size.max(along)
    count = on.sum(along)
    centred = lambda values: (values - values.sum(along) / count).where(on, 0.0)
    # least squares of log|pull| on log|β|: covariance over variance
    x = centred(np.log(size.where(on, 1.0)))
    y = centred(np.log(abs(pull).where(on, 1.0)))
    return (x * y).sum(along) / (x**2).sum(along).where(count > 1)
