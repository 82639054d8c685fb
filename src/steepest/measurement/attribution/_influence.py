"""How much each training example moves each model output: kernel regression on gradient features."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import get_lapack_funcs

from steepest.core.errors import UserError, nearest
from steepest.core.given import real, shown
from steepest.measurement.attribution._features import GradientFeatures, check_alike

AttributionMethod = Literal["newton", "trak"]
"""``"newton"`` has the curvatures of the losses and the leverages of the examples; ``"trak"`` leaves both out."""
FULL = (
    1e-9  # an example with leverage nearer to 1 is fitted by itself, and its removal has no limit
)


@dataclass(frozen=True, eq=False)
class Attribution:
    """How much n training examples move t model outputs.

    Attributes:
        scores: shape ``(t, n)``, the mean over models of how much the output would fall without the example, to first
            order; positive where the example raises the output.
        errors: standard error of this mean over independently trained models, ``(t, n)``; NaN with a single model.
        ridge: λ of each model, shape ``(m,)``.
    """

    scores: Float[np.ndarray, "t n"]
    errors: Float[np.ndarray, "t n"]
    ridge: Float[np.ndarray, " m"]

    def predict(self, subsets: Bool[np.ndarray, "s n"]) -> Float[np.ndarray, "s t"]:
        """Return the outputs of models trained on subsets, less an unknown constant of each output: sums of scores.

        Args:
            subsets: which examples each training sees.

        Raises:
            UserError: another number of examples.
        """
        return as_subsets(subsets, self.scores.shape[1]) @ self.scores.T


def attribute(
    train: GradientFeatures,
    targets: GradientFeatures,
    *,
    method: AttributionMethod = "newton",
    ridge: float | None = None,
) -> Attribution:
    r"""Attribute model outputs to training examples: leave-one-out by one step of Newton's method, or TRAK scores.

    With features φ_i of the training examples (rows of Φ), φ(x) of an output that is attributed, and residuals r,

    .. math:: \tau_i(x) = \frac{\phi(x)^\top H^{-1} \phi_i\, r_i}{1 - w_i\,\phi_i^\top H^{-1}\phi_i},\quad
        H = \Phi^\top W \Phi + \lambda I \quad\text{(Newton)},\qquad
        \tau_i(x) = \phi(x)^\top (\Phi^\top\Phi + \lambda I)^{-1} \phi_i\, r_i \quad\text{(TRAK)},

    where w are the curvatures of the losses. Newton's step is exact for ridge regression on the features: there it is
    the output less the output of the same regression without example i. The steps between the two are in the source.
    TRAK's paper averages its two factors over models one by one; here their products are averaged.

    Args:
        train: of ``gradient_features`` on the training examples.
        targets: the same of examples whose outputs are attributed, under the same models and with the same projection.
        method: see above.
        ridge: λ, of a penalty ½ λ‖θ‖² beside the *sum* of the examples' losses. By default the mean of w_i ‖φ_i‖², as
            much as a single example adds to the Hessian. For Newton's method n (1 − β)/(η T) is as good or better on
            nine of ten networks, by up to 0.13 of the linear datamodeling score, and worse on one by 0.05, for a
            training of T steps of size η with momentum β: a descent that ends has learned directions with curvature
            above the inverse of its time, as a ridge has. Weights and residuals do not tell this time: on some
            networks evidence, cross-validation, stationarity and held-out losses each choose a ridge that costs 0.2 or
            more (the page of benchmarks). Zero is far from the best on networks.

    Raises:
        UserError: features of other models or of another projection; an unknown method; a negative ridge; features that
            depend on each other, without a ridge; an example with leverage 1.

    Source: Park et al. 2023; Koh and Liang 2017; Pregibon 1981; Ali, Kolter and Tibshirani 2019 (the ridge of a time).

    >>> from steepest.measurement import gradient_features
    >>> x, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 6.0])
    >>> w = np.linalg.lstsq(x, y)[0]
    >>> found = gradient_features((lambda w, x: x @ w, w), (x, y), model_output="value")
    >>> newton = attribute(found, found, method="newton", ridge=0.0)
    >>> without_last = x[:2, 0] @ y[:2] / (x[:2, 0] @ x[:2, 0])
    >>> bool(abs(newton.scores[0, 2] - (w[0] - without_last)) < 1e-6)
    True
    """
    # Newton's step. Near trained weights the model is linear in them: f_i(θ) = f_i + φ_iᵀ(θ − θ*), and θ* minimizes
    #     R(θ) = Σ_i ℓ(f_i(θ); y_i) + ½ λ‖θ − θ₀‖²,   with slopes −r_i and curvatures w_i of ℓ in f.
    # 1. At θ* its gradient is zero. Without example i it is −(−r_i φ_i) = r_i φ_i.
    # 2. Its Hessian is H = Φᵀ W Φ + λI, and H − w_i φ_i φ_iᵀ without example i.
    # 3. One step of Newton's method without example i: Δθ = −(H − w_i φ_i φ_iᵀ)⁻¹ φ_i r_i.
    # 4. By Sherman and Morrison (H − w_i φ_i φ_iᵀ)⁻¹ φ_i = H⁻¹ φ_i / (1 − h_i), with leverage h_i = w_i φ_iᵀ H⁻¹ φ_i.
    # 5. So the output at x falls by τ_i(x) = −φ(x)ᵀ Δθ = φ(x)ᵀ H⁻¹ φ_i r_i / (1 − h_i). For the squared loss R is a
    #    parabola and the step exact; at x_i itself y_i − f_i becomes r_i + h_i r_i/(1 − h_i) = r_i/(1 − h_i) without i.
    # 6. TRAK takes W = I and h = 0: each τ_i is then a product of φ(x)ᵀ (ΦᵀΦ + λI)⁻¹ φ_i and r_i, 1 − p for a margin.
    check_alike(train, targets)
    if method not in get_args(AttributionMethod):
        raise UserError(
            f"there is no method {method!r}; {nearest(str(method), get_args(AttributionMethod))}"
        )
    if ridge is not None and real("ridge", ridge) < 0:
        raise UserError(f"ridge is a number of at least 0, got {shown(ridge)}; try ridge=1.0")
    count = len(train.features)
    mean = 0.0
    squares = 0.0
    ridges = []
    for i in range(count):
        phi = train.features[i].astype(float)
        weights = train.curvatures[i].astype(float) if method == "newton" else np.ones(len(phi))
        usual = float((weights * (phi**2).sum(1)).mean())
        penalty = usual if ridge is None else float(ridge)
        ridges.append(penalty)
        scores = _scores(phi, targets.features[i].astype(float), weights, penalty, method)
        scores *= train.residuals[i]
        step = scores - mean
        mean = mean + step / (i + 1)
        squares = squares + step * (scores - mean)
    errors = np.sqrt(squares / (count * (count - 1))) if count > 1 else np.full_like(mean, np.nan)
    return Attribution(np.asarray(mean), errors, np.array(ridges))


def _scores(
    phi: NDArray, of: NDArray, weights: NDArray, penalty: float, method: AttributionMethod
) -> NDArray:
    """Return φ(x)ᵀ H⁻¹ φ_i, shape ``(t, n)``, over 1 − h_i for Newton's method."""
    if len(phi) <= phi.shape[1]:
        # H⁻¹ Φᵀ = Φᵀ A⁻¹ with A = W ΦΦᵀ + λI, so that 1 − h_i = λ (A⁻¹)_ii
        inverse = _inverse(weights[:, None] * (phi @ phi.T), penalty)
        products = (of @ phi.T) @ inverse
        spared = penalty * np.diag(inverse)
    else:
        solved = _inverse((phi.T * weights) @ phi, penalty) @ phi.T
        products = of @ solved
        spared = 1 - weights * np.einsum("nk,kn->n", phi, solved)
    if method == "trak":
        return products
    if spared.min() < FULL:
        raise UserError(
            f"training example {int(spared.argmin())} has leverage 1: nothing but itself fits it, and the output "
            "without it is unknown; give a larger ridge"
        )
    return products / spared


def _inverse(matrix: NDArray, penalty: float) -> NDArray:
    """Return the inverse of a matrix with the penalty added on its diagonal.

    Raises:
        UserError: there is none, to rounding.
    """
    matrix[np.diag_indices_from(matrix)] += penalty
    factorize, condition, invert = get_lapack_funcs(("getrf", "gecon", "getri"), (matrix,))
    factors, order, trouble = factorize(matrix)
    share, _ = condition(factors, np.abs(matrix).sum(0).max())
    if trouble or not share > len(matrix) * np.finfo(float).eps:
        raise UserError(
            f"gradient features of the training examples depend on each other, and with ridge={penalty:g} nothing "
            "tells their effects apart; give a larger ridge, or None for the default"
        )
    inverse, _ = invert(factors, order)
    return inverse


def as_subsets(subsets: ArrayLike, examples: int) -> NDArray:
    """Return which examples each training sees, as booleans ``(s, n)``.

    Raises:
        UserError: another shape, or other numbers than 0 and 1.
    """
    given = np.asarray(subsets)
    is_mask = given.dtype == bool or (given.dtype.kind in "iuf" and np.isin(given, (0, 1)).all())
    if given.ndim != 2 or given.shape[1] != examples or not is_mask:
        raise UserError(
            f"subsets say True or False of each of the {examples} training examples, one row for each training, got "
            f"{shown(given)}; for lists of places set mask[row, places] = True"
        )
    return given.astype(bool)
