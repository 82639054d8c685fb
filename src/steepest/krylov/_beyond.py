"""How far beyond the Ritz values an eigenvalue can hide, from a start that is random.

The vector that comes next in a Krylov space is ``P(A) b`` with the start b and a polynomial P that is known: its roots
are Ritz values, those that restarts discarded and those of now, and its scale is the product of the links. It has unit
length, so that an eigenvector v with the eigenvalue λ has ``|P(λ)| |v·b| ≤ 1``. Away from the Ritz values P is large,
and there v would have to be nearly orthogonal to b (van Dorsselaer, Hochstenbach and van der Vorst 2001). A residual
says less: it bounds the distance to some eigenvalue.

Here ``b = s + g`` with the unit vector s of the caller and a Gaussian g of entries of variance 1/p. Whatever s is,
``v·s + v·g`` has a density of at most √(p/2π), so that ``|v·b| ≤ x`` has a probability of at most x √(2p/π). By the
same argument with s and g exchanged it also holds over random starts of the caller.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from steepest.krylov._space import KrylovSpace

NEAR = 1e-3
"""How closely at most the end of the spectrum is to be known, relative to the eigenvalue that was found."""
AGAIN = 2
"""After so many times the products that the residuals took, what is known of the end has to do ..."""
LEAST = 30
"""... and after this many at least."""
SIDES = {"largest": (1,), "smallest": (-1,), "magnitude": (1, -1)}


class Beyond:
    """What is known beyond the Ritz values of a Krylov space.

    Attributes:
        start: b, ``(p,)``.
        exhausted: whether a space that began in b has become invariant: b has no part outside of it.
    """

    def __init__(
        self,
        start: Float[np.ndarray, " p"],
        count: int,
        which: str,
        order: Callable,
        missed: float,
        rng: np.random.Generator,
    ):
        size = len(start)
        length = np.linalg.norm(start)
        noise = rng.standard_normal(size) / np.sqrt(size)  # entries of variance 1/p
        self.start = (start / length if length else 0) + noise.astype(start.dtype)
        self.exhausted = False
        self._count = count
        self._sides = SIDES[which]
        self._outward = lambda values: -order(values.astype(float))
        # x √(2p/π) = missed, in units of the length of b
        least = missed * np.sqrt(np.pi / (2 * size)) / np.linalg.norm(self.start)
        self._enough = -np.log(least)  # |P| is to exceed 1 / |v·b|
        self._settled = 0

    def is_known(
        self, space: KrylovSpace, values: Float[np.ndarray, " k"], near: float, spent: int
    ) -> bool:
        """Tell whether the end of the spectrum is known well enough, or enough products were spent on it.

        Args:
            space: whose residuals are small.
            values: all Ritz values, the most extreme one first.
            near: no eigenvalue may hide outside of this distance from the wanted ones.
            spent: products until now.
        """
        self._settled = self._settled or spent
        if self.exhausted or spent >= max(AGAIN * self._settled, LEAST):
            return True
        # between two roots log |P| is concave, so that the ends of the gaps between the wanted values are enough
        wanted = self._outward(values[: self._count])
        ends = np.r_[wanted + near, wanted[:-1] - near]
        places = np.concatenate([side * ends for side in self._sides])
        # beside a Ritz value |P| is small by itself
        apart = np.abs(places[:, None] - values).min(1) > 0.99 * near
        return bool((space.log_growth(values, places[apart]) >= self._enough).all())

    def bound(self, space: KrylovSpace, values: Float[np.ndarray, " k"], floor: float) -> float:
        """Return what no eigenvalue lies beyond, at least a distance of rounding from the most extreme Ritz value."""
        end = float(self._outward(values[:1])[0])

        def hides(distance: float) -> bool:
            places = np.array([side * (end + distance) for side in self._sides])
            # |v·b| ≤ 1/|P| is not unlikely there
            return bool((space.log_growth(values, places) < self._enough).any())

        far = floor = max(floor, float(np.finfo(float).eps * space.link))
        if not self.exhausted and space.count < len(self.start):
            while hides(far):
                far *= 2
            near = far / 2 if far > floor else far
            for _ in range(20):
                middle = (near + far) / 2
                near, far = (middle, far) if hides(middle) else (near, middle)
        return (end + far) * self._sides[0]
