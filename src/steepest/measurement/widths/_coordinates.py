"""What the layers of one network write along its first steps of training: the sizes of a coordinate check."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import svds

from steepest.core.errors import UserError
from steepest.measurement._building import Built
from steepest.measurement.adapters import Subject, Weight, few, in_evaluation
from steepest.measurement.adapters import subject as attach

EARLY = 3  # steps among which that is found at which all layers have moved
EVEN = 1.05  # largest tenth of an array's first changes over their median: below it they are as even as Adam's
EXACT = 512  # smaller side of a matrix up to which its Gram matrix is formed


@dataclass
class Coordinates:
    """Sizes along the first steps: root mean squares over fixed examples and coordinates.

    Attributes:
        name: of the model.
        shapes: of the arrays of weights with two axes or more, by name.
        weights: the number of all weights.
        start: what each layer writes at the start; the layer that writes the outputs is not among them.
        outputs: of the network, at the start.
        change: how far what each layer writes has moved from the start, after each step.
        outputs_change: how far the outputs have.
        own: how far what a layer writes (of the last layer: the outputs) has moved after each of the first steps where
            this layer's array alone has its new weights, so that no other layer's change feeds into it; at most
            ``EARLY`` of them.
        arrays: the array of weights of each of these layers.
        relative: spectral norm of the change of each array after the last step, over that of its start.
        risks: mean loss on the first examples, at the start and after the last step.
        even: of each array that moved whether its first change was of one size in all entries, as Adam's is.
        passes: over the fixed examples.
    """

    name: str
    shapes: dict[str, tuple[int, ...]]
    weights: int
    start: dict[str, float]
    outputs: float
    change: dict[str, list[float]] = field(default_factory=dict)
    outputs_change: list[float] = field(default_factory=list)
    own: dict[str, list[float]] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    relative: dict[str, float] = field(default_factory=dict)
    risks: tuple[float, float] = (np.nan, np.nan)
    even: dict[str, bool] = field(default_factory=dict)
    passes: int = 1


def fixed_examples(built: Built, count: int) -> NDArray:
    """Return the first inputs ``(m, …)`` of what was built, at most ``count``.

    Raises:
        UserError: inputs in several arrays; whatever ``subject`` refuses.
    """
    with evaluated(built.model) as model:
        whole = attach(model, built.loss, built.data, micro_batch=count, check=False)
        return few(whole, count).inputs()


def initial_weights(built: Built) -> NDArray:
    """Return the weights before the first step, shape ``(p,)``."""
    with evaluated(built.model) as model:
        return attach(model, built.loss, built.data, check=False).values()


def coordinates(built: Built, x: NDArray, steps: int) -> Coordinates:
    """Measure a network along the first steps of its own training.

    Layers are read in evaluation mode, without dropout; batch normalization takes the statistics of ``x``.

    Args:
        built: what the reader's function returned.
        x: the fixed examples, ``(m, …)``.
        steps: of training, at most; training may end earlier.

    Raises:
        UserError: nothing trains it, or its training ends before the first step.
    """
    run = islice(built.steps(), steps + 1)
    with evaluated(next(run)) as model:
        begun = attach(model, built.loss, built.data, micro_batch=len(x), check=False)
        # with a copy of the weights: a module is changed in place
        start = _Start.of(_precise(few(begun, len(x)), x), x)
        risk = start.subject.risk()
    sizes = start.sizes()
    later = start.subject
    for step, trained in enumerate(run, 1):
        with evaluated(trained) as model, np.errstate(all="ignore"):  # of what diverges
            later = start.subject.now(model)
            if later.dtype != start.subject.dtype:
                later = later.precise()
            start.record_changes(sizes, later)
            if step <= EARLY:
                start.record_own_changes(sizes, later)
            sizes.risks = (risk, later.risk())
    if not sizes.outputs_change:
        raise UserError(
            "'train' ends before its first step; let it take one step of the optimizer before each yield"
        )
    start.record_weights(sizes, later.values())
    return sizes


class _Start(NamedTuple):
    """A network before its first step.

    Attributes:
        subject: the network.
        x: the fixed examples.
        values: its weights, shape ``(p,)``.
        written: what its layers write.
        outputs: what it gives.
        last: the layer that writes the outputs, or nothing.
        owners: the array of weights that each layer multiplies by, where its name tells.
    """

    subject: Subject
    x: NDArray
    values: NDArray
    written: dict[str, NDArray]
    outputs: NDArray
    last: str
    owners: dict[str, Weight]

    @classmethod
    def of(cls, subject: Subject, x: NDArray) -> "_Start":
        """Evaluate it at the fixed examples."""
        written, outputs = _read(subject, x)
        last = next(reversed(written), "")
        if last and written[last].size != outputs.size:
            last = ""
        return cls(subject, x, subject.values(), written, outputs, last, _owners(subject, written))

    def sizes(self) -> Coordinates:
        """Return what is known before the first step."""
        arrays = [weight for weight in self.subject.weights if len(weight.shape) > 1]
        hidden = [name for name in self.written if name != self.last]
        return Coordinates(
            self.subject.name,
            {weight.name: weight.shape for weight in arrays},
            self.subject.size,
            {name: _size(self.written[name]) for name in hidden},
            _size(self.outputs),
            change={name: [] for name in hidden},
            own={name: [] for name in self.owners},
            arrays={name: weight.name for name, weight in self.owners.items()},
        )

    def record_changes(self, sizes: Coordinates, later: Subject) -> None:
        """Add how far layers and outputs have moved, and how even the first change of each array is."""
        written, outputs = _read(later, self.x)
        for name, changes in sizes.change.items():
            changes.append(_size(written[name] - self.written[name]))
        sizes.outputs_change.append(_size(outputs - self.outputs))
        sizes.passes += 1
        difference = later.values() - self.values
        for weight in self.subject.weights:
            if weight.name in sizes.shapes and weight.name not in sizes.even:
                part = difference[weight.place]
                if part.any():
                    sizes.even[weight.name] = _is_even(part)

    def record_own_changes(self, sizes: Coordinates, later: Subject) -> None:
        """Add how far each layer moves what it writes by its own array alone."""
        now = later.values()
        for name, weight in self.owners.items():
            alone = self.values.copy()
            alone[weight.place] = now[weight.place]
            network = later.at(alone)
            if name == self.last:
                moved = network.evaluate(self.x) - self.outputs
            else:
                moved = network.layers(self.x)[name] - self.written[name]
            sizes.own[name].append(_size(moved))
            sizes.passes += 1

    def record_weights(self, sizes: Coordinates, now: NDArray) -> None:
        """Add the change of each array in spectral norm."""
        for weight in self.subject.weights:
            if weight.name in sizes.shapes:
                before = self.values[weight.place].reshape(weight.shape[0], -1)
                after = now[weight.place].reshape(weight.shape[0], -1)
                sizes.relative[weight.name] = _relative(before, after)


@contextmanager
def evaluated(model: Any) -> Iterator[Any]:
    """Yield the model in evaluation mode; one with batch normalization as a copy that takes statistics of its batch."""
    with in_evaluation(model):
        yield _with_statistics_of_batch(model)


def _with_statistics_of_batch(model: Any) -> Any:
    """Return a module whose batch normalization has no running statistics, which lag behind and hide the scale."""
    if not hasattr(model, "modules"):
        return model
    from torch.nn.modules.batchnorm import _BatchNorm

    if not any(isinstance(part, _BatchNorm) for part in model.modules()):
        return model
    copied = copy.deepcopy(model)
    for part in copied.modules():
        if isinstance(part, _BatchNorm):
            part.running_mean = None
            part.running_var = None
    return copied


def _precise(subject: Subject, x: NDArray) -> Subject:
    """Return the subject in double precision, where small changes are no rounding; as it is where that is refused."""
    try:
        precise = subject.precise()
        precise.evaluate(x)
    except UserError:
        return subject
    return precise


def _read(subject: Subject, x: NDArray) -> tuple[dict[str, NDArray], NDArray]:
    """Return what the layers write, by name, and the outputs."""
    outputs = np.asarray(subject.evaluate(x), float)
    try:
        written = subject.layers(x)
    except UserError:  # a function of JAX, whose layers cannot be seen
        written = {}
    return {name: np.asarray(z, float) for name, z in written.items()}, outputs


def _owners(subject: Subject, written: dict[str, NDArray]) -> dict[str, Weight]:
    """Return the array of weights that each layer multiplies by, where it is known by name."""
    by_name = {weight.name: weight for weight in subject.weights}
    owners = {}
    for layer in written:
        for name in (f"{layer}.weight", f"{layer}.w", "weight"):
            if name in by_name and len(by_name[name].shape) > 1:
                owners[layer] = by_name[name]
                break
    return owners


def _size(z: NDArray) -> float:
    """Return the root mean square; NaN where training has diverged."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.sqrt(np.mean(np.square(z, dtype=float))))
    return size if np.isfinite(size) else np.nan


def _is_even(difference: NDArray) -> bool:
    """Tell whether all entries that moved did so by one amount.

    >>> _is_even(np.array([0.1, -0.1, 0.0, 0.1])), _is_even(np.array([0.1, 0.2, 0.3]))
    (True, False)
    """
    moved = np.abs(difference[difference != 0])
    return bool(np.quantile(moved, 0.9) <= EVEN * np.median(moved))


def _relative(before: NDArray, after: NDArray) -> float:
    """Return ``‖ΔW‖₂ / ‖W‖₂``; NaN of an array that starts at zero, or that is not finite."""
    if not np.isfinite(after).all():
        return np.nan
    start = _spectral_norm(before)
    return _spectral_norm(after - before) / start if start else np.nan


def _spectral_norm(matrix: NDArray) -> float:
    """Return the largest singular value, shape ``(m, n)``; of large matrices by Lanczos.

    >>> round(_spectral_norm(np.diag([3.0, 1.0])), 12)
    3.0
    """
    matrix = np.asarray(matrix, float)
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    side = len(wide)
    if side <= EXACT or not wide.any():
        values: Any = eigvalsh(wide @ wide.T, subset_by_index=(side - 1, side - 1))
        return float(np.sqrt(max(values[0], 0.0)))
    largest: Any = svds(wide, 1, v0=np.ones(side), return_singular_vectors=False)
    return float(largest[0])
