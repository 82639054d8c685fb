"""The mean loss on a plane through trained weights, along directions that are scaled like the filters."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.given import file, real, shown, whole
from steepest.measurement.adapters import Subject, in_evaluation, subject, unwrapped
from steepest.measurement.adapters._subject import Weight

LEVELS = 20  # of the contours


@dataclass(frozen=True, eq=False)
class RiskPlane:
    """The mean loss at ``w* + a d₁ + b d₂``.

    Attributes:
        offsets: values of a and b, shape ``(k,)``; zero, where the given weights are, is one of them.
        risks: shape ``(k, k)``, first a, then b; not finite where the loss is not.
        directions: d₁ and d₂, shape ``(2, p)``.
    """

    offsets: Float[np.ndarray, " k"]
    risks: Float[np.ndarray, "k k"]
    directions: Float[np.ndarray, "2 p"]

    @property
    def risk(self) -> float:
        """Return the mean loss at the given weights."""
        middle = len(self.offsets) // 2
        return float(self.risks[middle, middle])

    def draw(self, path: str | Path) -> None:
        """Draw contours of the loss, at levels that lie evenly in its logarithm where it is above zero.

        Raises:
            UserError: a name without an ending that says the format; no loss is finite.
        """
        from matplotlib.figure import Figure  # as long as nobody draws, nobody waits for it

        target = file("a picture", path)
        finite = self.risks[np.isfinite(self.risks)]
        if not len(finite):
            raise UserError("no loss on this plane is finite; take a smaller size=")
        low = float(finite.min())
        high = float(finite.max())
        even = np.geomspace if low > 0 else np.linspace
        levels = np.unique(even(low, high, LEVELS)) if high > low else None
        figure = Figure(figsize=(5, 4), layout="constrained")
        axes = figure.add_subplot()
        drawn = axes.contour(self.offsets, self.offsets, self.risks.T, levels=levels)
        figure.colorbar(drawn, label="mean loss")
        axes.plot(0, 0, "k+")
        axes.set(xlabel="along d₁, in sizes of the filters", ylabel="along d₂", aspect="equal")
        figure.savefig(target)


def risk_plane(
    model: Any,
    loss: Any,
    data: Any,
    *,
    size: float = 1.0,
    points: int = 21,
    outputs_axis: int | None = None,
    seed: int = 0,
    micro_batch: int = 1024,
) -> RiskPlane:
    r"""Compute the mean loss on a plane through trained weights, along two random filter-normalized directions.

    A direction is Gaussian, and in every filter (the weights to one output of a layer) scaled to the norm of the
    filter, so that networks whose layers have other scales compare. Arrays with a single axis, biases and what
    normalization layers multiply by, stay as they are. A plane of two directions among millions shows little of a
    landscape: what looks convex there has often negative curvature, which ``measure`` finds.

    Args:
        model: trained, as for ``measure``. It is read in evaluation mode, and left exactly as it is.
        loss: as for ``measure``, the mean over examples.
        data: a pair ``(x, y)`` or an iterable of batches.
        size: largest a and b, in norms of the filters.
        points: values of a and of b, an odd number; the data are passed over ``points²`` times.
        outputs_axis: the axis of a layer's array that has the outputs; by default the last one of arrays called
            ``kernel`` or ``w`` in flax and haiku, and else the first.
        seed: of the directions.
        micro_batch: as for ``measure``.

    Raises:
        UserError: numbers out of their ranges; no array with two axes; what ``measure`` refuses.

    Source: Li, Xu, Taylor, Studer and Goldstein 2018, Visualizing the loss landscape of neural nets.

    >>> import jax.numpy as jnp
    >>> x = np.eye(2)
    >>> square = lambda f, y: ((f - y) ** 2).sum(1).mean() / 2
    >>> plane = risk_plane((lambda w, x: x @ w.T, 3 * jnp.eye(2)), square, (x, 3 * x), points=3)
    >>> plane.risk, round(float(plane.risks[0, 1]), 4)  # ‖d₁‖²/4, and filters of norm 3
    (0.0, 4.5)
    """
    if not 0 < real("size", size) < np.inf:
        raise UserError(f"size is a finite number above 0, got {shown(size)}; try 1.0")
    points = whole("points", points, 3)
    if points % 2 == 0:
        raise UserError(
            f"points is an odd number, so that the given weights are among them, got {points}; try {points + 1}"
        )
    with in_evaluation(unwrapped(model)):
        attached = subject(model, loss, data, micro_batch=micro_batch)
        centre = attached.values()
        directions = filter_normalized(attached, 2, outputs_axis, np.random.default_rng(seed))
        offsets = np.linspace(-size, size, points)
        risks = [
            attached.at(
                (centre + a * directions[0] + b * directions[1]).astype(centre.dtype)
            ).risk()
            for a in offsets
            for b in offsets
        ]
    return RiskPlane(offsets, np.reshape(risks, (points, points)), directions)


def filter_normalized(
    attached: Subject, count: int, outputs_axis: int | None, rng: np.random.Generator
) -> Float[np.ndarray, "count p"]:
    """Return Gaussian directions whose filters have the norms of the weights' own."""
    directions = np.zeros((count, attached.size))
    matrices = [weight for weight in attached.weights if len(weight.shape) > 1]
    if not matrices:
        raise UserError(
            f"{attached.name} has no array of weights with two axes, so that it has no filters; give a network with a "
            "linear layer"
        )
    for weight in matrices:
        axis = _outputs_axis(weight) if outputs_axis is None else outputs_axis
        if not -len(weight.shape) <= axis < len(weight.shape):
            raise UserError(
                f"outputs_axis is an axis of every array of weights, got {axis} for {weight.name!r} of shape "
                f"{weight.shape}; leave it out"
            )
        of_filter = tuple(i for i in range(len(weight.shape)) if i != axis % len(weight.shape))
        norms = _norms(attached.weight(weight.name), of_filter)
        for direction in directions:
            drawn = rng.standard_normal(weight.shape)
            direction[weight.place] = (drawn * (norms / _norms(drawn, of_filter))).ravel()
    return directions


def _outputs_axis(weight: Weight) -> int:
    """Return the outputs' axis by the name: flax has ``kernel``, haiku ``linear.w``, and our networks ``0.w``."""
    *_, layer, array = ("", *weight.name.split("."))
    last = array == "kernel" or (array == "w" and not layer.isdecimal())
    return -1 if last else 0


def _norms(array: NDArray, of_filter: tuple[int, ...]) -> NDArray:
    return np.sqrt(np.square(array, dtype=float).sum(of_filter, keepdims=True))
