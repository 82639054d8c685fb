"""Numbers and points as axes show them: powers of ten, few ticks, thinned curves, limits."""

from typing import Any

import numpy as np


def thin(
    x: np.ndarray, y: np.ndarray, limit: int, log: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """At most ``limit`` points that draw like all of them.

    The horizontal axis, in its own scale, is cut into equal bins, and each keeps its first, last, lowest and highest
    point and one gap (NaN). Where x is not sorted, the points are a cloud or a closed path and are thinned evenly.

    Args:
        x: abscissae, shape ``(points,)``, positive or NaN where ``log`` is set.
        y: ordinates, shape ``(points,)``.
        limit: most points, at least 5.
        log: whether the horizontal axis is logarithmic.

    >>> x = np.arange(100_000.0)
    >>> a, b = thin(x, np.where(x == 77_777, 5.0, 0.0), 400)
    >>> len(a) <= 400, float(b.max())
    (True, 5.0)
    """
    if len(x) <= limit:
        return x, y
    place = np.log10(x) if log else x
    finite = np.isfinite(place)
    place = place[finite]
    if place.size < limit or np.any(np.diff(place) < 0):
        keep = np.unique(np.linspace(0, len(x) - 1, limit).round().astype(int))
        return x[keep], y[keep]
    x = x[finite]
    y = y[finite]
    for points in (2, 3, 4, 5):  # a smooth curve needs two points a bin, a rough one with gaps five
        edges = np.linspace(place[0], place[-1], max(1, limit // points) + 1)[1:-1]
        bins = [
            part for part in np.split(np.arange(len(x)), np.searchsorted(place, edges)) if part.size
        ]
        keep = np.unique(np.concatenate([_telling(y, part) for part in bins]))
        if len(keep) <= limit:
            break
    return x[keep], y[keep]


def _telling(y: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Indices of the first, last, lowest and highest point of a bin, and of one gap."""
    values = y[part]
    gaps = part[np.isnan(y[part])]
    ends = [part[0], part[-1], *gaps[:1]]
    if gaps.size < part.size:
        ends += [part[np.nanargmin(values)], part[np.nanargmax(values)]]
    return np.array(ends)


def power(value: float, digits: int = 4) -> str:
    """A number as a power of ten, in characters that every font has.

    >>> power(1e-8), power(250000.0), power(1.0)
    ('10⁻⁸', '2.5×10⁵', '1')
    """
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else str(value)
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    front = f"{float(mantissa):g}".replace("-", "−")
    exponent = str(int(exponent))
    if exponent == "0":
        return front
    ten = (
        "10"
        if exponent == "1"
        else "10" + exponent.translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    )
    return {"1": ten, "−1": f"−{ten}"}.get(front, f"{front}×{ten}")


def limits(
    given: tuple[float | None, float | None], values: list[Any], scale: str
) -> tuple[float | None, float | None]:
    """The limits of an axis; an end left open goes a little beyond the values that the other end lets in."""
    low, high = given
    flat = np.concatenate([valid(np.ravel(np.asarray(part, float)), scale) for part in values])
    inside = flat[
        (flat >= (-np.inf if low is None else low)) & (flat <= (np.inf if high is None else high))
    ]
    if inside.size == 0 or (low is None) == (high is None):
        return given
    to, back = (np.log10, lambda v: 10.0**v) if scale == "log" else (np.asarray, float)
    start = to(inside.min() if low is None else low)
    end = to(inside.max() if high is None else high)
    beyond = 0.05 * (end - start)
    return (back(start - beyond) if low is None else low), (
        back(end + beyond) if high is None else high
    )


def valid(values: np.ndarray, scale: str) -> np.ndarray:
    """The values, with NaN for what the axis cannot show."""
    return np.where(np.isfinite(values) & ((scale == "linear") | (values > 0)), values, np.nan)


def ticks(axis: Any, most: int) -> None:
    """Few ticks at round numbers, in plain characters."""
    from matplotlib import ticker

    low, high = sorted(axis.get_view_interval())
    if axis.get_scale() == "log":
        decades = np.log10(high / low)
        plain = low >= 1e-3 and high <= 2e4
        subs = (1,) if decades > 2.5 else (1, 3) if decades > 1.4 else (1, 2, 5)
        few = ticker.MaxNLocator(most - 1, steps=[1, 2, 5, 10])
        minor = (
            ticker.LogLocator(subs=range(2, 10)) if decades <= 4 < most else ticker.NullLocator()
        )
        axis.set_major_locator(
            few if decades < 0.6 else ticker.LogLocator(subs=subs, numticks=most)
        )
        axis.set_major_formatter(lambda value, _: f"{value:g}" if plain else power(value))
        axis.set_minor_locator(minor)
        axis.set_minor_formatter(ticker.NullFormatter())
        return
    axis.set_major_locator(ticker.MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    if 1e-3 <= max(abs(low), abs(high)) < 1e5:
        axis.set_major_formatter(ticker.ScalarFormatter(useOffset=False, useMathText=False))
    else:
        axis.set_major_formatter(lambda value, _: power(value, 6))
