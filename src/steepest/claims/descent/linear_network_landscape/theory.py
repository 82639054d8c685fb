"""A near miss of the eigenvalues of linear networks at their critical points."""

import numpy as np

from steepest.nn.types import Values


def without_factor(spectrum: Values, levels: Values, chosen: tuple[int, ...], depth: int) -> Values:
    """Return a spectrum with s_u ± s_v for each s_u^(1 − 2/L) (s_u ± s_v)."""
    changed = spectrum.copy()
    for first in levels[list(chosen)]:
        for other in np.delete(levels, chosen):
            for pair in (first + other, first - other):
                at = int(np.argmin(np.abs(spectrum - first ** (1 - 2 / depth) * pair)))
                changed[at] = pair
    return np.sort(changed)
