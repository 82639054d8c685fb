"""Unconstrained features: the classifier and every example's features are free, and weight decay shapes them both.

With N = nC examples, n of each class, features H (p, N) and classifier W (C, p), without bias,

    L(W, H) = (1/N) Σ_i ℓ((W H)_i, y_i) + λ_W/2 ‖W‖_F² + λ_H/2 ‖H‖_F².

The decay of a product is a nuclear norm: min over W H = Z of the two penalties is √(λ_W λ_H) ‖Z‖_*, if p ≥ C. So the
least L is the least of a *convex* function of the logits Z, and by convexity a least Z exists that is invariant under
relabelling classes and swapping examples of a class: Z = (s I + t 11ᵀ) Y with one-hot targets Y (C, N). What remains
is a minimum over one number, solved below. It is reached when H_i depends on the class alone and W ∝ Hᵀ (balance).
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.types import Network, Risk

UnconstrainedLoss = Literal["cross-entropy", "squared"]


class UnconstrainedMinimum(NamedTuple):
    """The global minimum of the unconstrained features model, known but for a rotation of the feature space.

    Attributes:
        loss: the least value of L, penalties included.
        logits: Z = W H at one example of each class, shape ``(C, C)``, a column a class.
        singular_values: of the logits Z of all N examples, the C largest, decreasing, shape ``(C,)``.
        classifier_norm: ‖W‖_F.
        feature_norm: ‖H‖_F over all N examples.
        cosine: between two *centred* class means, −1/(C−1); NaN where all features vanish.
        raw_cosine: between two class means before centring; NaN where all features vanish.
        duality: ‖W/‖W‖_F − M/‖M‖_F‖_F with the centred means M; NaN where all features vanish.
    """

    loss: float
    logits: np.ndarray
    singular_values: np.ndarray
    classifier_norm: float
    feature_norm: float
    cosine: float
    raw_cosine: float
    duality: float


@checked
def unconstrained_minimum(
    classes: Count,
    per_class: int,
    decay_w: float,
    decay_h: float,
    loss: UnconstrainedLoss = "cross-entropy",
) -> UnconstrainedMinimum:
    """Return the global minimum in closed form, for feature dimension p ≥ C.

    With μ = √(n λ_W λ_H):

    * cross-entropy: Z = a (I − 11ᵀ/C) Y with a = log(1/μ − (C−1)), and L = log(1 + (C−1) e^(−a)) + μ (C−1) a; zero
      features where μ ≥ 1/C. The class means are a simplex, before centring too (raw cosine −1/(C−1)).
    * squared, ½‖z − y‖² an example: Z = t Y with t = 1 − Cμ, and L = (1 − t)²/2 + Cμ t; zero features where Cμ ≥ 1.
      The class means are *orthogonal* (raw cosine 0), and a simplex only once centred.

    Args:
        classes: C, at least 2.
        per_class: n, examples of each class.
        decay_w: λ_W.
        decay_h: λ_H.
        loss: ``"cross-entropy"`` or ``"squared"``.

    Raises:
        UserError: for fewer than two classes, no examples, a decay that is not positive or an unknown loss.

    Source: Zhu et al. 2021, theorem 3.1 (cross-entropy, with a bias); Zhou et al. 2022 (squared).

    >>> simplex = unconstrained_minimum(4, per_class=1, decay_w=0.1, decay_h=0.1)
    >>> orthogonal = unconstrained_minimum(4, per_class=1, decay_w=0.1, decay_h=0.1, loss="squared")
    >>> round(simplex.raw_cosine, 4), orthogonal.raw_cosine, round(orthogonal.cosine, 4)
    (-0.3333, 0.0, -0.3333)
    """
    if classes < 2 or per_class < 1 or not (decay_w > 0 and decay_h > 0):
        raise UserError(
            "unconstrained_minimum: expected at least 2 classes, at least 1 example each and positive decays, "
            f"got {classes}, {per_class}, {decay_w} and {decay_h}; without decay there is no minimum"
        )
    mu = float(np.sqrt(per_class * decay_w * decay_h))
    others = classes - 1
    simplex = np.eye(classes) - 1 / classes
    if loss == "cross-entropy":
        # stationary where 1/(e^a + C − 1) = μ; for μ ≥ 1/C the value only rises, from a = 0
        size = np.log(max(1 / mu - others, 1.0))
        value = np.log1p(others * np.exp(-size)) + mu * others * size
        shape = simplex
    elif loss == "squared":
        # derivative in t: −(1 − t) + Cμ = 0, and t ≥ 0
        size = max(1 - classes * mu, 0.0)
        value = (1 - size) ** 2 / 2 + classes * mu * size
        shape = np.eye(classes)
    else:
        raise UserError(
            f"unconstrained_minimum: loss must be cross-entropy or squared, got {loss!r}"
        )
    # Y Yᵀ = n I: each singular value of the (C, C) shape is multiplied by √n
    singular = np.sqrt(per_class) * size * np.linalg.svd(shape, compute_uv=False)
    nuclear = singular.sum()  # ‖Z‖_* = √(λ_W/λ_H) ‖W‖² = √(λ_H/λ_W) ‖H‖²
    # W has the shape of Z (a root of it, which for these two is the same up to a factor), M that of the simplex
    duality = np.linalg.norm(shape / np.linalg.norm(shape) - simplex / np.linalg.norm(simplex))
    angles = (-1 / others, shape[0, 1] / shape[0, 0], duality) if size > 0 else (np.nan,) * 3
    norms = (np.sqrt(nuclear * np.sqrt(ratio)) for ratio in (decay_h / decay_w, decay_w / decay_h))
    return UnconstrainedMinimum(
        float(value), size * shape, singular, *map(float, (*norms, *angles))
    )


@checked
def unconstrained(classes: Count, dimension: Count, examples: Count, scale: float = 1.0) -> Network:
    """Build the unconstrained features model: its input is the *number* of an example, its output W h_i.

    Parameters are ``{"w": (C, p), "h": (N, p)}``, drawn from N(0, scale²/p).

    Args:
        classes: C.
        dimension: p.
        examples: N.
        scale: size of the random start.

    >>> net = unconstrained(classes=3, dimension=5, examples=6)
    >>> net.apply(net.init(jax.random.key(0)), np.arange(6)).shape
    (6, 3)
    """

    def init(key: Array) -> dict[str, Float[Array, "_ p"]]:
        for_w, for_h = jax.random.split(key)
        size = scale / dimension**0.5
        return {
            "w": size * jax.random.normal(for_w, (classes, dimension)),
            "h": size * jax.random.normal(for_h, (examples, dimension)),
        }

    def apply(params: dict[str, Array], x: Array) -> Float[Array, "... C"]:
        return params["h"][x] @ params["w"].T

    return Network(init, apply, f"unconstrained features, C={classes}, p={dimension}, N={examples}")


@checked
def unconstrained_risk(
    network: Network,
    loss: Callable[[Array, Array], Array],
    targets: Float[Array, "N C"],
    decay_w: float,
    decay_h: float,
) -> Risk:
    """Return the risk L(W, H): mean loss of outputs and targets over the examples, and the two penalties.

    >>> net = unconstrained(classes=2, dimension=3, examples=2)
    >>> risk = unconstrained_risk(net, lambda z, y: (z - y).sum(1) ** 2, np.eye(2), 0.1, 0.1)
    >>> float(risk({"w": np.zeros((2, 3)), "h": np.zeros((2, 3))}))
    1.0
    """
    numbers = jnp.arange(targets.shape[0])

    def risk(params: dict[str, Array]) -> Array:
        penalties = decay_w * (params["w"] ** 2).sum() + decay_h * (params["h"] ** 2).sum()
        return loss(network.apply(params, numbers), targets).mean() + penalties / 2

    return risk
