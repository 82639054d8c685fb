"""Ranks of Hessian and Gauss–Newton matrix of small networks, counted on dense matrices; and what theory says of them.

A network is f(x) = V[Wx]_+ with h neurons, d inputs and no biases, and the loss is the cross-entropy of C classes.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from steepest import kit

INPUTS = 8  # d
NEURONS = 16  # h
NETWORKS = 3
IMAGES = (2, 10, 30, 150)  # n; the last are more than the weights
LABELS = (3, 5)  # C
ZERO = 1e-13  # eigenvalues that count as none, over the largest; 2e-10 was the least of 200 runs that is one


def gauss_newton_rank(images: int, classes: int) -> int:
    r"""Return the rank of G = Σ_i J_iᵀ(diag p_i − p_i p_iᵀ)J_i at weights in general position.

    Each input brings C − 1, the rank of diag p − ppᵀ. Two changes of weights for each neuron leave the probabilities as
    they are: its weights can be scaled against those that leave it, and to these one number can be added.
    """
    return min(images * (classes - 1), NEURONS * (INPUTS + classes - 2))


def hessian_rank(classes: int) -> int:
    """Return the rank of the Hessian for many inputs, at weights in general position.

    No added number moves it. A scaling does, where the gradient does not vanish: f is bilinear in the weights into and
    out of a neuron, so that the rest of the Hessian maps the one onto the gradient with respect to the other.
    """
    return NEURONS * (INPUTS + classes - 1)


# -------------------------------------------------------------------------------------------- experiment


class SmallNetworks(NamedTuple):
    """Networks and inputs at random; fewer inputs are the first of them, fewer classes the first outputs.

    Attributes:
        first: W, shape ``(networks, h, d)``.
        last: V, shape ``(networks, C, h)``.
        x: inputs, shape ``(networks, n, d)``.
        labels: class numbers below the fewest classes, shape ``(networks, n)``.
    """

    first: Float[kit.Values, "networks h d"]
    last: Float[kit.Values, "networks C h"]
    x: Float[kit.Values, "networks n d"]
    labels: Int[kit.Values, "networks n"]


def draw_small(rng: np.random.Generator) -> SmallNetworks:
    """Draw weights of variance two over the fan-in, Gaussian inputs, and labels by chance."""
    first = rng.standard_normal((NETWORKS, NEURONS, INPUTS)) * np.sqrt(2 / INPUTS)
    last = rng.standard_normal((NETWORKS, max(LABELS), NEURONS)) * np.sqrt(2 / NEURONS)
    x = rng.standard_normal((NETWORKS, max(IMAGES), INPUTS))
    return SmallNetworks(first, last, x, rng.integers(min(LABELS), size=x.shape[:2]))


def measure_ranks(networks: SmallNetworks) -> dict[str, kit.Values]:
    """Count eigenvalues of dense matrices, for the cross-entropy and the squared loss.

    Returns:
        ``gauss_rank``, ``(networks, images, labels)``, and ``hessian_rank`` with all inputs, ``(networks, labels)``;
        those under the squared loss with ``squared_`` in front; ``counted`` and ``uncounted``, the least eigenvalue
        that counts and the largest that does not, over the largest, of every matrix.
    """
    measured = {
        f"{prefix}{name}": np.empty((NETWORKS, *shape), int)
        for prefix in ("", "squared_")
        for name, shape in (
            ("gauss_rank", (len(IMAGES), len(LABELS))),
            ("hessian_rank", (len(LABELS),)),
        )
    }
    gaps = []

    def count(matrix: kit.Values) -> int:
        size = np.abs(np.linalg.eigvalsh(matrix))
        counts = size > ZERO * size.max()
        gaps.append((size[counts].min() / size.max(), size[~counts].max(initial=0.0) / size.max()))
        return int(counts.sum())

    for i, network in enumerate(map(SmallNetworks._make, zip(*networks, strict=True))):
        for label, classes in enumerate(LABELS):
            for prefix in ("", "squared_"):
                rows, wrong = factor(network, classes, squared=bool(prefix))
                for image, n in enumerate(IMAGES):
                    first = rows[:n].reshape(n * classes, -1)
                    wide = len(first) < first.shape[1]  # both products have the same rank
                    square = first @ first.T if wide else first.T @ first
                    measured[f"{prefix}gauss_rank"][i, image, label] = count(square)
                # the last n is more than the weights: here square is G of all inputs
                matrix = square + coupling(network, classes, wrong)
                measured[f"{prefix}hessian_rank"][i, label] = count(matrix)
    counted, uncounted = np.array(gaps).T
    return {**measured, "counted": counted, "uncounted": uncounted}


def factor(network: SmallNetworks, classes: int, *, squared: bool) -> tuple[kit.Values, kit.Values]:
    """Return rows whose second moment is G, and the derivatives of the losses by the outputs.

    Rows are a root of the Hessian of the loss by the outputs, diag p − ppᵀ or one, times the outputs' derivatives.

    Args:
        network: a single one, without the first axis.
        classes: of the outputs these many count.
        squared: whether the loss is half the squared distance to one-hot labels, in place of the cross-entropy.

    Returns:
        Shapes ``(n, C, p)``, with the weights W before V, and ``(n, C)``.
    """
    first, last, x, labels = network
    last = last[:classes]
    hidden = np.maximum(x @ first.T, 0)
    outputs = hidden @ last.T
    # ∂f_c/∂W_jd = V_cj g_j x_d
    into = np.einsum("cj,nj,nd->ncjd", last, (hidden > 0).astype(float), x)
    out_of = np.einsum("ce,nj->ncej", np.eye(classes), hidden)  # ∂f_c/∂V_ej = δ_ce relu(z_j)
    flat = (len(x), classes, -1)
    jacobian = np.concatenate([into.reshape(flat), out_of.reshape(flat)], 2)
    hot = np.eye(classes)[labels]
    if squared:
        return jacobian, outputs - hot
    chance = softmax(outputs, axis=1)
    # AᵀA = diag p − ppᵀ for A = (diag √p)(I − 1pᵀ), as the p sum to one
    root = np.sqrt(chance)[:, :, None] * (np.eye(classes) - chance[:, None, :])
    return root @ jacobian, chance - hot


def coupling(network: SmallNetworks, classes: int, wrong: kit.Values) -> kit.Values:
    """Return Σ_i Σ_c r_ic ∇²f_c(x_i), which couples W with V, shape ``(p, p)``.

    Args:
        network: a single one.
        classes: of the outputs these many count.
        wrong: r, the derivatives of the losses by the outputs, shape ``(n, C)``.
    """
    active = (network.x @ network.first.T > 0).astype(float)
    # ReLU'' is zero: of ∇²f_c only ∂²f_c/∂W_jd ∂V_cj = g_j x_d is left
    by_neuron = np.einsum("nj,nd,nc->jdc", active, network.x, wrong)
    block = np.einsum("jdc,jk->jdck", by_neuron, np.eye(NEURONS))  # W_jd with V_ck
    block = block.reshape(NEURONS * INPUTS, classes * NEURONS)
    corner = [np.zeros((size, size)) for size in block.shape]
    return np.block([[corner[0], block], [block.T, corner[1]]])
