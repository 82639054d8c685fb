"""Distributions of (x, y) whose theory is known by construction."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.data._dataset import Dataset
from steepest.nn.data._hypercube import hypercube
from steepest.nn.types import Key


@checked
def separable(key: Key, n: int, d: int, margin: float = 0.5) -> Dataset:
    """Draw Gaussian points pushed away from a random hyperplane through 0, labels ±1 by its side.

    Every point satisfies y ⟨w, x⟩ ≥ margin for the unit vector w in ``known["separator"]``; the maximal margin is at
    least ``margin`` (``known["margin_at_least"]``), for the data may allow more.

    >>> data = separable(jax.random.key(0), n=50, d=3, margin=0.2)
    >>> bool((data.y * (data.x @ data.known["separator"]) >= 0.2 - 1e-6).all())
    True
    """
    _positive(n=n, d=d, margin=margin)
    for_w, for_x = jax.random.split(key)
    w = jax.random.normal(for_w, (d,))
    w = w / jnp.linalg.norm(w)
    x = jax.random.normal(for_x, (n, d))
    along = x @ w
    y = jnp.where(along >= 0, 1.0, -1.0)
    return Dataset(
        x + margin * y[:, None] * w, y, "separable", {"separator": w, "margin_at_least": margin}
    )


@checked
def clusters(key: Key, n: int, d: int, classes: int, spread: float = 0.3) -> Dataset:
    """Draw Gaussian clusters around random unit means, one-hot targets, classes as equal in number as n allows.

    ``known["means"]`` holds the means, shape ``(classes, d)``; ``spread`` is the standard deviation per axis.
    """
    _positive(n=n, d=d, classes=classes)
    for_means, for_x = jax.random.split(key)
    means = jax.random.normal(for_means, (classes, d))
    means = means / jnp.linalg.norm(means, axis=1, keepdims=True)
    label = jnp.arange(n) % classes
    x = means[label] + spread * jax.random.normal(for_x, (n, d))
    return Dataset(
        x, jax.nn.one_hot(label, classes), "Gaussian clusters", {"means": means, "spread": spread}
    )


@checked
def orthogonal_clusters(key: Key, k: int, d: int, each: int, spread: float = 0.1) -> Dataset:
    """Draw Gaussian clusters around k orthonormal centres, of which every other one is positive.

    An example is μ_i + (α/√d) g with g ~ N(0, I_d), so that it lies about α from its centre; it has label +1 for
    i = 0, 2, 4, … and −1 for the others. ``known["centres"]`` holds the centres, shape ``(k, d)``, ``known["signs"]``
    their labels, ``(k,)``, and ``known["cluster"]`` the cluster of each example, ``(k·each,)``. Examples are sorted by
    cluster.

    Args:
        key: random key of the centres and of the noise.
        k: how many clusters, of both classes together.
        d: dimension of the inputs, at least k.
        each: examples a cluster.
        spread: α; zero puts every example at its centre.

    Raises:
        UserError: more clusters than dimensions, or a negative spread.

    Source: Vidal's talk; Min and Vidal 2024; Frei et al. 2023.

    >>> data = orthogonal_clusters(jax.random.key(0), k=4, d=6, each=3, spread=0.0)
    >>> bool(jnp.allclose(data.x @ data.known["centres"].T, jnp.repeat(jnp.eye(4), 3, axis=0), atol=1e-6))
    True
    """
    _positive(k=k, d=d, each=each)
    if k > d:
        raise UserError(
            f"orthogonal_clusters: expected at most d = {d} orthogonal centres, got {k}; raise d"
        )
    if not spread >= 0:
        raise UserError(f"orthogonal_clusters: expected a spread of at least 0, got {spread}")
    for_centres, for_x = jax.random.split(key)
    # k orthonormal columns, as rows
    centres = jnp.linalg.qr(jax.random.normal(for_centres, (d, k)))[0].T
    cluster = jnp.repeat(jnp.arange(k), each)
    x = centres[cluster] + spread / np.sqrt(d) * jax.random.normal(for_x, (k * each, d))
    signs = jnp.where(jnp.arange(k) % 2 == 0, 1.0, -1.0)
    return Dataset(
        x,
        signs[cluster],
        "orthogonal clusters",
        {"centres": centres, "signs": signs, "cluster": cluster, "spread": spread},
    )


@checked
def orthogonally_separable(key: Key, n: int, d: int, mu: float = 0.1) -> Dataset:
    """Draw points with y_i y_j cos(x_i, x_j) ≥ μ for every pair: classes point in opposite directions.

    Each is y (√c e + √(1−c) u) times a length in [0.5, 1.5], with a common unit vector e, u random and orthogonal to
    e, and c large enough for the worst pair: cos = c + (1−c) ⟨u_i, u_j⟩ ≥ 2c − 1, so c = (1 + μ)/2 always does.
    ``known["mu"]`` is the μ of the points drawn. Labels alternate, so the classes have equal size up to one.

    Source: Vidal's talk; Min, Mallada and Vidal 2024, assumption 1.

    >>> data = orthogonally_separable(jax.random.key(0), n=20, d=5, mu=0.2)
    >>> bool(data.known["mu"] >= 0.2)
    True
    """
    _positive(n=n, d=d, mu=mu)
    if d < 2:
        raise UserError(f"d must be at least 2 for orthogonally separable data, got {d}")
    if mu >= 1:
        raise UserError(f"mu is a cosine and must lie in (0, 1), got {mu}; try 0.1")
    for_e, for_u, for_length = jax.random.split(key, 3)
    e = jax.random.normal(for_e, (d,))
    e = e / jnp.linalg.norm(e)
    u = jax.random.normal(for_u, (n, d))
    u = u - (u @ e)[:, None] * e
    u = u / jnp.linalg.norm(u, axis=1, keepdims=True)
    y = jnp.where(jnp.arange(n) % 2 == 0, 1.0, -1.0)
    # cos = c + (1 − c) ⟨u_i, u_j⟩ ≥ 2c − 1 = μ
    share = (1 + mu) / 2
    length = jax.random.uniform(for_length, (n, 1), minval=0.5, maxval=1.5)
    x = length * y[:, None] * (jnp.sqrt(share) * e + jnp.sqrt(1 - share) * u)
    return Dataset(x, y, "orthogonally separable", {"mu": orthogonal_separability(x, y)})


@checked
def orthogonal_separability(x: Float[Array, "n d"], y: Float[Array, " n"]) -> Float[Array, ""]:
    """Return the smallest y_i y_j cos(x_i, x_j) over pairs: positive when the data are μ-orthogonally separable."""
    unit = y[:, None] * x / jnp.linalg.norm(x, axis=1, keepdims=True)
    return (unit @ unit.T).min()


@checked
def sparse_regression(key: Key, n: int, d: int, nonzero: int, noise: float = 0.0) -> Dataset:
    """Draw Gaussian features with targets ⟨β, x⟩ + noise, β of ``nonzero`` entries ±1 (``known["beta"]``).

    >>> int((sparse_regression(jax.random.key(0), 10, 30, 3).known["beta"] != 0).sum())
    3
    """
    _positive(n=n, d=d, nonzero=nonzero)
    if nonzero > d:
        raise UserError(f"at most d = {d} coefficients can be nonzero, got {nonzero}")
    for_x, for_sign, for_place, for_noise = jax.random.split(key, 4)
    x = jax.random.normal(for_x, (n, d))
    places = jax.random.permutation(for_place, d) < nonzero
    beta = places * jax.random.rademacher(for_sign, (d,), float)
    y = x @ beta + noise * jax.random.normal(for_noise, (n,))
    return Dataset(x, y, "sparse regression", {"beta": beta})


@checked
def parity(
    key: Key, n: int, bits: int, *, examples: int | None = None, flip: float = 0.0
) -> Dataset:
    """Return points of the cube {±1}^n / √n with the product of the signs of their first bits as labels.

    All 2^n points in a fixed order, or so many drawn independently. ``known["bits"]`` is how many bits count,
    ``known["flipped"]`` marks labels that were turned. No function of fewer than all of these bits is correlated with
    the labels.

    Args:
        key: random key of the draw and of the noise; without either it is not used.
        n: dimension d of the inputs, which are unit vectors.
        bits: how many coordinates the parity is of.
        examples: how many points to draw with replacement; the whole cube by default.
        flip: probability with which each label is turned, independently.

    Raises:
        UserError: more bits than coordinates, a whole cube of more than 2^20 points, or no probability.

    >>> data = parity(jax.random.key(0), 3, 2)
    >>> data.x.shape, float(data.y.sum()), bool((data.y == jnp.sign(data.x[:, 0] * data.x[:, 1])).all())
    ((8, 3), 0.0, True)
    """
    _positive(n=n, bits=bits)
    if bits > n:
        raise UserError(f"parity: expected at most n = {n} bits, got {bits}")
    if not 0 <= flip <= 1:
        raise UserError(f"parity: expected flip, a probability, from 0 to 1, got {flip}")
    for_x, for_flips = jax.random.split(key)
    if examples is None:
        if n > 20:
            raise UserError(
                f"parity: expected at most 20 coordinates for a whole cube, got {n}; pass examples"
            )
        signs = jnp.asarray(hypercube(n))
    else:
        _positive(examples=examples)
        signs = jax.random.rademacher(for_x, (examples, n), float)
    y = jnp.prod(signs[:, :bits], axis=1)
    flipped = jax.random.uniform(for_flips, y.shape) < flip
    return Dataset(
        signs / np.sqrt(n),
        jnp.where(flipped, -y, y),
        f"parity of {bits} of {n} bits",
        {"bits": bits, "flipped": flipped},
    )


@checked
def chebyshev(n: int, degree: int) -> Dataset:
    """Return T_degree on n equal steps of [−1, 1], inputs of shape ``(n, 1)``, targets ``(n, 1)``.

    >>> chebyshev(5, 2).y[:, 0].tolist()  # 2 x² − 1
    [1.0, -0.5, -1.0, -0.5, 1.0]
    """
    _positive(n=n)
    x = jnp.linspace(-1.0, 1.0, n)
    # T_n(cos φ) = cos nφ
    y = jnp.cos(degree * jnp.arccos(jnp.clip(x, -1, 1)))
    return Dataset(x[:, None], jnp.round(y, 12)[:, None], f"Chebyshev {degree}", {"degree": degree})


@checked
def relabel(key: Key, data: Dataset, fraction: float = 1.0) -> Dataset:
    """Add label noise: each target is replaced, with the given probability, by a target permuted over the whole set.

    Permuting everything (fraction one) keeps the frequencies of the classes; ``known["noisy"]`` marks the targets
    that were redrawn.
    """
    if not 0 <= fraction <= 1:
        raise UserError(f"a fraction of labels lies between 0 and 1, got {fraction}")
    for_order, for_choice = jax.random.split(key)
    noisy = jax.random.uniform(for_choice, (data.n,)) < fraction
    shuffled = data.y[jax.random.permutation(for_order, data.n)]
    y = jnp.where(noisy.reshape(-1, *[1] * (data.y.ndim - 1)), shuffled, data.y)
    return Dataset(data.x, y, f"{data.name}, {fraction:.0%} random labels", {"noisy": noisy})


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise UserError(f"{name} must be positive, got {value}")
