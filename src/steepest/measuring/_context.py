"""What every measure may see: the subject, the user's training settings, and what was computed already."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steepest.curvature import Eigenpairs, top_eigenpairs
from steepest.errors import UserError
from steepest.subject import Subject


@dataclass
class Context:
    """One measurement.

    Attributes:
        subject: model, loss and data.
        rng: source of probes and starting vectors.
        lr: the user's step size, if known.
        momentum: heavy-ball momentum β.
        since: weights of a checkpoint, shape ``(p,)``, if there is one.
        start: where Lanczos starts, shape ``(p,)``: the eigenvectors found last, or nothing.
    """

    subject: Subject
    rng: np.random.Generator
    lr: float | None = None
    momentum: float = 0.0
    since: NDArray | None = None
    start: NDArray | None = None

    @cached_property
    def classes(self) -> int:
        """Number of outputs of a classifier, whose targets are class numbers.

        Raises:
            UserError: for anything else.
        """
        outputs, targets = self.outputs
        if outputs.ndim != 2 or targets.shape != outputs.shape[:1] or not np.issubdtype(targets.dtype, np.integer):
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
        """Outputs and targets of all examples."""
        return self.subject.outputs()

    @cached_property
    def top(self) -> Eigenpairs:
        """The largest eigenpairs of the Hessian: as many as classes, at least one and at most ten."""
        try:
            count = min(self.classes, 10)
        except UserError:
            count = 1
        start = self.start if self.start is not None else self.rng.standard_normal(self.subject.size)
        start = start.astype(self.subject.dtype)
        tolerance = 1e-6 if self.subject.dtype == np.float64 else 1e-3
        return top_eigenpairs(self.subject.products, start, min(count, self.subject.size), tolerance=tolerance)
