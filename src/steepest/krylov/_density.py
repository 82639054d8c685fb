"""The spectral density of a symmetric operator by stochastic Lanczos quadrature."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.given import whole
from steepest.core.signatures import checked
from steepest.krylov._operators import Operator
from steepest.krylov._space import KrylovSpace, multiply
from steepest.krylov._threads import sequential
from steepest.krylov._trace import ProbeEstimate, check_probing, standard_error

MEMORY = 2**30  # bytes of Krylov spaces at a time


class Density(NamedTuple):
    """Weighted points on the axis of eigenvalues, one set for each probe; every set has total weight one.

    Attributes:
        nodes: Ritz values, shape ``(probes, steps)``.
        weights: squared first components of their eigenvectors, shape ``(probes, steps)``.
        size: p, the number of eigenvalues.
        products: products with vectors that it took.
    """

    nodes: Float[np.ndarray, "probes steps"]
    weights: Float[np.ndarray, "probes steps"]
    size: int
    products: int

    def moment(self, power: int) -> ProbeEstimate:
        """Estimate the mean of ``λ^power`` over the eigenvalues; each probe is exact up to ``2 steps − 1``."""
        # Gauss quadrature: exact for polynomials up to degree 2 steps − 1
        moments = (self.weights * self.nodes**power).sum(1)
        return ProbeEstimate(
            float(moments.mean()), standard_error(moments), len(moments), self.products
        )

    def share_below(
        self, values: Float[np.ndarray, " v"]
    ) -> tuple[Float[np.ndarray, " v"], Float[np.ndarray, " v"]]:
        """Estimate the share of the eigenvalues below each value, with its standard error over the probes.

        To the error of the probes comes the resolution: weights between two neighbouring nodes are not placed. Nodes
        carry rounding: to count an eigenvalue that occurs many times, such as 0, ask a little above or below it.
        """
        below = self.nodes[:, :, None] <= np.asarray(values)  # (probes, nodes, values)
        shares = (self.weights[:, :, None] * below).sum(1)
        return shares.mean(0), shares.std(0, ddof=1) / np.sqrt(len(shares))

    def smoothed(self, values: Float[np.ndarray, " v"], width: float) -> Float[np.ndarray, " v"]:
        """Smooth the density with a Gaussian of this standard deviation; its integral stays one."""
        distance = (np.asarray(values) - self.nodes[:, :, None]) / width
        bumps = np.exp(-(distance**2) / 2) / (np.sqrt(2 * np.pi) * width)
        return (self.weights[:, :, None] * bumps).sum(1).mean(0)


@checked
@sequential
def spectral_density(
    operator: Operator, size: int, rng: np.random.Generator, *, probes: int = 30, steps: int = 60
) -> Density:
    """Estimate the density by stochastic Lanczos quadrature (Golub and Meurant 2010; Ghorbani et al. 2019).

    Every probe is a unit Gaussian vector; as many as fit are multiplied at once and reorthogonalized in full.

    Args:
        operator: products of the matrix with vectors, in NumPy.
        size: p.
        rng: source of the probes.
        probes: their number, at least 2.
        steps: dimension of each Krylov space, at most p.

    Raises:
        UserError: too few probes or steps; products that are not finite.

    >>> A = np.diag(np.arange(1.0, 5.0))
    >>> density = spectral_density(lambda v: v @ A, 4, np.random.default_rng(0), probes=50, steps=4)
    >>> density.nodes[0].round(6).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    if whole("probes", probes) < 2 or whole("steps", steps) < 1:
        raise UserError(
            f"a density needs at least two probes and one step, got {probes} and {steps}"
        )
    check_probing(size, probes)
    steps = min(steps, size)
    starts = rng.standard_normal((probes, size))
    # a uniformly random direction: E (v·b)² = 1/p for each eigenvector
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    together = max(1, MEMORY // (8 * steps * size))  # probes whose Krylov spaces are held at a time
    blocks = [starts[i : i + together] for i in range(0, probes, together)]
    small = np.concatenate([_projections(operator, block, steps) for block in blocks])
    nodes, vectors = np.linalg.eigh(small)
    # squared first components: b is the first basis vector
    return Density(nodes, vectors[:, 0, :] ** 2, size, probes * steps)


def _projections(
    operator: Operator, starts: Float[np.ndarray, "n p"], steps: int
) -> Float[np.ndarray, "n steps steps"]:
    """Return the matrix projected on the Krylov space of every start; after the end of a space it is zero.

    So the nodes after the end have no weight.
    """
    spaces = [KrylovSpace(start, steps, float, images=False) for start in starts]
    for _ in range(steps):
        directions = np.stack([space.direction() for space in spaces])
        for space, image in zip(
            spaces, multiply(operator, directions, "spectral density"), strict=True
        ):
            space.grow(image)
    return np.stack([space.small for space in spaces])
