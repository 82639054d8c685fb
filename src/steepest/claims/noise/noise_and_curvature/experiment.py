"""The covariance of examples' gradients beside the Hessian, all matrices dense."""

from collections.abc import Sequence

import jax
import numpy as np

from steepest.nn.types import Params, Values
from steepest.noise import gradient_moments

SHOWN = 30
"""Sharpest directions that are kept for the figure."""


def compare(
    hessian: Values,
    jacobian: Values,
    residuals: Values,
    sums: Values,
    differences: Values,
    rng: np.random.Generator,
) -> dict[str, Values]:
    """Compare the covariance of the examples' gradients with the Hessian.

    Args:
        hessian: H, shape ``(P, P)``.
        jacobian: of the outputs, shape ``(n, K, P)``.
        residuals: outputs less targets, shape ``(n, K)``.
        sums: orthonormal directions in which all outputs move alike, shape ``(P, features)``.
        differences: the same for the first output less the second, shape ``(P, features)``.
        rng: draws white residuals of the same mean square.

    Returns:
        trace: tr C/tr H over 2L/K. cosine, white, isotropic: cosine between C and H, the C of white residuals and H,
        C and the identity. turned: mean cosine of C and H after a random rotation. aligned: tr C/tr H over 2L/K of
        residuals as large along the outputs that their image moves most. alphas: vᵀCv/vᵀHv over 2L/K,
        sharpest directions first. silent, white_silent, contrast: vᵀCv/vᵀHv over 2L/K along the
        sharpest sum of outputs, with white residuals, and along the like difference of two outputs. sharp, flattest:
        the sharpest and the flattest sum's curvature over λ_max. risk: L over that of a constant guess.
    """
    classes = residuals.shape[1]
    unit = (residuals**2).mean()  # 2L/K
    noise = _covariance(jacobian, residuals)
    white = _covariance(jacobian, rng.normal(scale=unit**0.5, size=residuals.shape))
    # top eigenvector of JJᵀ of each example, (n, K): the residual of the longest gradient Jᵀr
    most_moved = np.linalg.eigh(jacobian @ jacobian.swapaxes(1, 2))[1][:, :, -1]
    sizes = np.linalg.norm(residuals, axis=1) * rng.choice([-1.0, 1.0], len(residuals))
    aligned = sizes[:, None] * most_moved
    values, vectors = np.linalg.eigh(hessian)
    top = vectors[:, ::-1][:, :SHOWN]
    # sums are orthonormal: these are curvatures along combinations of them
    within, mixing = np.linalg.eigh(sums.T @ hessian @ sums)
    sharpest = sums @ mixing[:, -1]
    share = lambda matrix, v: (v @ matrix @ v) / (v @ hessian @ v) / unit
    return {
        "trace": np.trace(noise) / np.trace(hessian) / unit,
        "aligned": np.trace(_covariance(jacobian, aligned)) / np.trace(hessian) / unit,
        "cosine": _cosine(noise, hessian),
        "white": _cosine(white, hessian),
        "isotropic": _cosine(noise, np.eye(len(noise))),
        # E tr(QCQᵀH) = tr C tr H/P over random rotations Q
        "turned": np.trace(noise) * np.trace(hessian) / len(noise) / _norms(noise, hessian),
        "alphas": np.array([share(noise, v) for v in top.T]),
        "silent": share(noise, sharpest),
        "white_silent": share(white, sharpest),
        "contrast": share(noise, differences @ mixing[:, -1]),
        "sharp": within[-1] / values[-1],
        "flattest": within[0] / values[-1],
        # the constant guess 1/K of one-hot targets has L = (K − 1)/2K
        "risk": unit * classes / (classes - 1) * classes,
    }


def compare_labels(
    hessian: Values,
    jacobian: Values,
    probabilities: Values,
    labels: Values,
    numbers: Sequence[int],
    rng: np.random.Generator,
) -> dict[str, Values]:
    """Compare second moments of cross-entropy's gradients, with labels of several kinds, with the mean Hessian.

    Args:
        hessian: mean over labels that the model draws, shape ``(P, P)``.
        jacobian: of the logits, shape ``(n, K, P)``.
        probabilities: of the model, shape ``(n, K)``.
        labels: of the data, one-hot, shape ``(n, K)``.
        numbers: labels of each image, rising.
        rng: draws labels.

    Returns:
        gap, even_gap: one less the cosine between the Hessian and the mean moment of so many labels an image, from the
        model and with even chances, shape ``(numbers,)``. data_gap: the same with the data's labels, of every number.
        ratio, data_ratio: trace of the moment over the Hessian's, of all labels from the model and of the data's.
    """

    def moment(targets: Values) -> Values:
        # by its logits cross-entropy has the gradient p − y
        gradients = np.matmul((probabilities - targets)[:, None], jacobian)[:, 0]
        return gradients.T @ gradients / len(gradients)

    def average(chances: Values) -> tuple[list[float], Values]:
        """Return gaps after each number of labels, and the mean moment of all."""
        total = np.zeros_like(hessian)
        gaps = []
        for number in range(1, numbers[-1] + 1):
            below = np.cumsum(chances[:, :-1], 1) < rng.random((len(chances), 1))
            total += moment(np.eye(chances.shape[1])[below.sum(1)])
            if number in numbers:
                gaps.append(1 - _cosine(total, hessian))
        return gaps, total / numbers[-1]

    gaps, model = average(probabilities)
    even_gaps, _ = average(np.full_like(probabilities, 1 / probabilities.shape[1]))
    data = moment(labels)
    return {
        "gap": np.array(gaps),
        "even_gap": np.array(even_gaps),
        "data_gap": np.full(len(numbers), 1 - _cosine(data, hessian)),
        "ratio": np.trace(model) / np.trace(hessian),
        "data_ratio": np.trace(data) / np.trace(hessian),
    }


def along(params: Params, outputs: Values) -> Values:
    """Return the directions in which the output layer moves one combination of outputs, shape ``(P, features)``.

    Args:
        params: weights and biases of all layers.
        outputs: the combination, of unit length, shape ``(K,)``.
    """
    zero = jax.tree.map(lambda part: np.zeros(part.shape), params)
    _, features = zero[-1]["w"].shape
    columns = []
    for i in range(features + 1):
        weights = np.zeros((outputs.size, features))
        if i < features:
            weights[:, i] = outputs
        biases = outputs if i == features else np.zeros(outputs.size)
        moved = (*zero[:-1], {"w": weights, "b": biases})
        columns.append(np.concatenate([part.ravel() for part in jax.tree.leaves(moved)]))
    return np.stack(columns, 1)


def _covariance(jacobian: Values, residuals: Values) -> Values:
    """Return the covariance of gradients J_kᵀ r_k, shape ``(P, P)``."""
    gradients = np.einsum("nk,nkp->np", residuals, jacobian)
    return gradient_moments(gradients, 1, "replacement").covariance


def _norms(a: Values, b: Values) -> float:
    return float(np.linalg.norm(a) * np.linalg.norm(b))


def _cosine(a: Values, b: Values) -> float:
    return float((a * b).sum()) / _norms(a, b)
