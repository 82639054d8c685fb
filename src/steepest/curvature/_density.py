"""The spectral density of a symmetric operator by stochastic Lanczos quadrature."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from steepest.curvature._eigenpairs import Products
from steepest.curvature._threads import sequential
from steepest.curvature._trace import Estimated
from steepest.errors import UserError

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

    def moment(self, power: int) -> Estimated:
        """Mean of ``λ^power`` over the eigenvalues, exact for each probe up to ``2 steps − 1``, with its error."""
        each = (self.weights * self.nodes**power).sum(1)
        error = each.std(ddof=1) / np.sqrt(len(each))
        return Estimated(float(each.mean()), float(error), len(each), self.products)

    def share_below(self, values: Float[np.ndarray, " v"]) -> tuple[Float[np.ndarray, " v"], Float[np.ndarray, " v"]]:
        """Share of the eigenvalues below each value and its standard error over the probes.

        To the error of the probes comes the resolution: weights between two neighbouring nodes are not placed. Nodes
        carry rounding: to count an eigenvalue that occurs many times, such as 0, ask a little above or below it.
        """
        below = self.nodes[:, :, None] <= np.asarray(values)
        each = (self.weights[:, :, None] * below).sum(1)
        return each.mean(0), each.std(0, ddof=1) / np.sqrt(len(each))

    def smoothed(self, values: Float[np.ndarray, " v"], width: float) -> Float[np.ndarray, " v"]:
        """Density of the eigenvalues seen through a Gaussian of this standard deviation; its integral is one."""
        distance = (np.asarray(values) - self.nodes[:, :, None]) / width
        bumps = np.exp(-(distance**2) / 2) / (np.sqrt(2 * np.pi) * width)
        return (self.weights[:, :, None] * bumps).sum(1).mean(0)


@sequential
def spectral_density(
    products: Products, size: int, rng: np.random.Generator, *, probes: int = 30, steps: int = 60
) -> Density:
    """Stochastic Lanczos quadrature (Golub and Meurant 2010; Ghorbani, Krishnan and Xiao 2019).

    Every probe is a unit Gaussian vector; as many as fit are multiplied at once and reorthogonalized in full.

    Args:
        products: of the matrix with vectors.
        size: p.
        rng: source of the probes.
        probes: their number, at least 2.
        steps: dimension of each Krylov space, at most p.

    Raises:
        UserError: too few probes or steps; products that are not finite.

    >>> A = np.diag(np.arange(1.0, 5.0))
    >>> found = spectral_density(lambda v: v @ A, 4, np.random.default_rng(0), probes=50, steps=4)
    >>> found.nodes[0].round(6).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    if probes < 2 or steps < 1:
        raise UserError(f"a density needs at least two probes and one step, got {probes} and {steps}")
    steps = min(steps, size)
    start = rng.standard_normal((probes, size))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    together = max(1, MEMORY // (8 * steps * size))  # probes whose Krylov spaces are held at a time
    parts = [_lanczos(products, start[i : i + together], steps) for i in range(0, probes, together)]
    diagonal, links = (np.concatenate(each) for each in zip(*parts, strict=True))
    # a link of zero ends a Krylov space: the nodes after it have no weight
    small = np.zeros((probes, steps, steps))
    i = np.arange(steps)
    small[:, i, i] = diagonal
    small[:, i[:-1], i[1:]] = small[:, i[1:], i[:-1]] = links
    nodes, vectors = np.linalg.eigh(small)
    return Density(nodes, vectors[:, 0, :] ** 2, size, probes * steps)


def _lanczos(products: Products, start: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Diagonals ``(probes, steps)`` and links ``(probes, steps − 1)`` of the tridiagonal matrices."""
    probes, size = start.shape
    basis, diagonal, links = np.zeros((probes, steps, size)), np.zeros((probes, steps)), np.zeros((probes, steps - 1))
    basis[:, 0] = start
    for k in range(steps):
        image = np.array(products(basis[:, k]), float)  # a copy: what an operator returns is not ours to change
        if not np.isfinite(image).all():
            raise UserError("a product of the matrix with a vector is not finite, so that it has no spectral density")
        diagonal[:, k] = np.einsum("np,np->n", basis[:, k], image)
        if k + 1 == steps:
            break
        for _ in range(2):  # twice is enough (Giraud, Langou and Rozložník 2005)
            image -= np.einsum("nk,nkp->np", np.einsum("nkp,np->nk", basis[:, : k + 1], image), basis[:, : k + 1])
        links[:, k] = np.linalg.norm(image, axis=1)
        scale = np.abs(diagonal).max(1) + np.abs(links).max(1)
        ended = links[:, k] <= 1e-10 * scale
        links[ended, k] = 0.0
        basis[:, k + 1] = np.where(ended[:, None], 0.0, image / np.where(ended, 1.0, links[:, k])[:, None])
    return diagonal, links
