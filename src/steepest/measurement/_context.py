"""The context of a measure: the subject, the user's training settings, and results that several measures share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.krylov import Eigenpairs, top_eigenpairs
from steepest.measurement._descents import Tried
from steepest.measurement._optimizer import Optimizer
from steepest.measurement.adapters import Kind, Subject, few, rescaled_products, rounding

Value = TypeVar("Value")


@dataclass
class Context:
    """One measurement.

    Attributes:
        subject: model, loss and data.
        rng: source of probes and starting vectors.
        optimizer: the user's, as far as it is known.
        since: weights of a checkpoint, shape ``(p,)``, if there is one.
        start: where Lanczos starts, shape ``(p,)``: the eigenvectors found last, or nothing.
        kind: which curvature: the Hessian, the Gauss–Newton matrix or the empirical Fisher matrix.
        several: whether more than the largest eigenpair is wanted.
        seed: of samples of the examples.
        batch: examples in each of the user's batches, if they say it.
        held_out: the same model on examples that it was not trained on, if there are some.
        descents: how many short descents are tried at most; 0 where it is not said.
        stationary: whether data and targets of the loss stay as they are while the network changes.
        tried: what descents came to, once they are made.
    """

    subject: Subject
    rng: np.random.Generator
    optimizer: Optimizer = field(default_factory=Optimizer)
    since: NDArray | None = None
    start: NDArray | None = None
    kind: Kind = "hessian"
    several: bool = True
    seed: int = 0
    batch: int | None = None
    held_out: Subject | None = None
    descents: int = 0
    stationary: bool = True
    tried: Tried | None = field(default=None, init=False)
    _found: dict[Callable, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, function: "Callable[[Context], Value]") -> Value:
        """Return what a function finds in this context, which several ask for: it is called for the first of them."""
        if function not in self._found:
            self._found[function] = function(self)
        return self._found[function]

    @cached_property
    def classes(self) -> int:
        """Return the number of outputs of a classifier, whose targets are class numbers.

        Raises:
            UserError: for anything else.
        """
        outputs, targets = self.outputs
        if (
            outputs.ndim != 2
            or targets.shape != outputs.shape[:1]
            or not np.issubdtype(targets.dtype, np.integer)
        ):
            raise UserError(
                "a classifier has outputs (n, classes) and class numbers (n,) as targets; "
                f"these are {outputs.shape} and {targets.shape} of {targets.dtype}"
            )
        if targets.min() < 0 or targets.max() >= outputs.shape[1]:
            raise UserError(
                f"class numbers lie between 0 and {outputs.shape[1] - 1}, got {targets.min()} to {targets.max()}"
            )
        return outputs.shape[1]

    @cached_property
    def outputs(self) -> tuple[NDArray, NDArray]:
        """Return outputs and targets of all examples."""
        return self.subject.outputs()

    @property
    def outputs_alone(self) -> tuple[NDArray, NDArray]:
        """Return outputs and targets of all examples, each by itself: with running statistics, if any."""
        return self.subject.alone().outputs() if self.subject.normalizes else self.outputs

    @cached_property
    def signals(self) -> dict[str, NDArray]:
        """Return what each layer writes at all examples, before its activation."""
        return self.subject.layers()

    @cached_property
    def errors(self) -> dict[str, NDArray]:
        """Return the gradient of each example's loss in what each layer writes."""
        return self.subject.errors()

    @cached_property
    def top(self) -> Eigenpairs:
        """Find the largest eigenpairs of the curvature: one, or as many as classes up to ten."""
        try:
            count = min(self.classes, 10) if self.several else 1
        except UserError:
            count = 1
        return top_eigenpairs(
            self.products, self._first(), min(count, self.subject.size), tolerance=self._tolerance
        )

    @cached_property
    def preconditioned(self) -> Eigenpairs:
        """Find the largest eigenpair of ``P^{-1/2} (H + λ) P^{-1/2}`` with Adam's P, λ its decay in the gradient."""
        optimizer = self.optimizer
        scale = np.ones(1) if optimizer.scale is None else optimizer.scale
        decay = 0.0 if optimizer.decoupled else optimizer.one_decay
        products = rescaled_products(self.subject, scale, decay, self.kind)
        return top_eigenpairs(products, self._first(), tolerance=self._tolerance)

    @cached_property
    def rounding(self) -> float:
        """Return by which share single precision may move eigenvalues, as it moves the product with the first."""
        return self.rounding_along(self.top.vectors[0])

    def rounding_along(self, vector: NDArray) -> float:
        """Return by which share single precision moves the product of the curvature with a vector, shape ``(p,)``.

        In a training, where an eigenvector of the last time is at hand, few examples must do.
        """
        subject = self.subject if self.start is None else few(self.subject)
        return rounding(subject, vector, self.kind)

    def products(self, vectors: NDArray) -> NDArray:
        """Multiply vectors by the curvature matrix that was asked for."""
        return self.subject.products(vectors, self.kind)

    @property
    def _tolerance(self) -> float:
        """Return how small residuals must be, over the largest eigenvalue, whose error is of their square.

        Of one eigenvalue a hundredth is enough: other examples move it by more. Several, and their vectors, need more.
        """
        if self.subject.dtype == np.float64:
            return 1e-10
        return 1e-4 if self.several else 1e-2

    def _first(self) -> NDArray:
        start = (
            self.start if self.start is not None else self.rng.standard_normal(self.subject.size)
        )
        return start.astype(self.subject.dtype)
