"""Gradients of model outputs, one for each example, as features: exact, or projected by a count sketch."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.given import shown, whole
from steepest.measurement.adapters import (
    Subject,
    in_evaluation,
    is_torch_module,
    outputs_of,
    random_states,
    unwrapped,
)
from steepest.measurement.adapters._batches import taken
from steepest.measurement.adapters._modes import is_of
from steepest.measurement.attribution._outputs import (
    Law,
    LossOfOutput,
    ModelOutput,
    check_pair,
    law_of,
)
from steepest.measurement.attribution._sketch import PARAMETERS, Sketch

GRADIENTS = 2**28  # bytes of gradients that are held at once, unless a single one takes more
ROUNDING = 1e3  # times the precision: what an output changes by who else is in its batch
SHUFFLING = ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")
APART = 2  # examples of a batch that are evaluated by themselves for this


@dataclass(frozen=True, eq=False)
class GradientFeatures:
    """Features of n examples under m models: gradients of the model output, or their projections.

    Attributes:
        features: shape ``(m, n, k)``, in the precision of the weights.
        values: the model output f, shape ``(m, n)``.
        residuals: −ℓ'(f), the slope of each example's loss in its output with the sign turned, ``(m, n)``: 1 − p with
            the probability p of the class, or y − f for the squared loss.
        curvatures: ℓ''(f), shape ``(m, n)``: p (1 − p), or 1.
        parameters: p, how many weights the gradients have.
        dimension: k of the projection; None where the features are the gradients themselves.
        seed: of the projection.
    """

    features: Float[np.ndarray, "m n k"]
    values: Float[np.ndarray, "m n"]
    residuals: Float[np.ndarray, "m n"]
    curvatures: Float[np.ndarray, "m n"]
    parameters: int
    dimension: int | None
    seed: int

    def kernel(
        self, other: "GradientFeatures | None" = None
    ) -> tuple[Float[np.ndarray, "m n l"], Float[np.ndarray, "m n l"]]:
        """Return the tangent kernel ⟨g_i, g'_j⟩ of each model, and the standard error that the projection gives it.

        The products of features are right on average over seeds. Their standard deviation is at most
        √((‖g‖²‖g'‖² + ⟨g, g'⟩²)/k), in which the error has the features' own norms and products. Exact features have
        no such error, only rounding.

        Args:
            other: features of other examples under the same models, by default these.

        Raises:
            UserError: other models or another projection.
        """
        second = self if other is None else other
        check_alike(self, second)
        first = self.features.astype(float)
        last = second.features.astype(float)
        products = first @ last.transpose(0, 2, 1)
        if self.dimension is None:
            return products, np.zeros_like(products)
        squares = (first**2).sum(2)[:, :, None] * (last**2).sum(2)[:, None]
        return products, np.sqrt((squares + products**2) / self.dimension)


def gradient_features(
    model: Any,
    data: Any,
    *,
    dimension: int | None = 4096,
    seed: int = 0,
    model_output: ModelOutput | Callable[[Any, Any], Any] = "margin",
    loss: LossOfOutput | None = None,
    checkpoints: Sequence[Any] | None = None,
    micro_batch: int = 1024,
) -> GradientFeatures:
    r"""Compute the gradient of a scalar model output in the weights, for each example, projected to few numbers.

    The projection is a count sketch S: a hash gives each weight one of k places and a sign, and the entries of a
    gradient that meet are added. So E⟨Sg, Sg'⟩ = ⟨g, g'⟩ over seeds, with a standard deviation of at most
    √((‖g‖²‖g'‖² + ⟨g, g'⟩²)/k), as for a dense random matrix, and at the cost of one addition for each weight. No
    matrix of the projection exists. At most 256 MB of gradients are held at a time, or a single example's.

    Args:
        model: as for ``measure``: a ``torch.nn.Module``, a pair ``(apply, params)`` of JAX, a module of flax or
            equinox. It is read in evaluation mode, and left exactly as it is.
        data: a pair ``(x, y)`` or an iterable of such batches, in the same order in every pass.
        dimension: k. With None, or as many as the weights, features are the gradients themselves.
        seed: of the hash. Features of the same seed, dimension and models belong together, in JAX and in torch alike.
            Each checkpoint has a hash of its own, so that errors average out over models.
        model_output: ``"margin"``, log p/(1 − p) with the probability p of the example's class, of logits ``(b, C)`` or
            one logit; ``"value"``, the single output of a regression; or a function of ``(outputs, targets)`` of a
            batch with shape ``(b,)``.
        loss: the loss of an example as a function of its output f: ``"logistic"``, log(1 + e^−f), as the cross-entropy
            is of a margin, or ``"squared"``, ½ (f − y)². By default the first for margins, the second for values.
        checkpoints: weights of several trainings of this model, as state dicts, trees of parameters or models; by
            default the model's own.
        micro_batch: largest number of examples that are differentiated at once.

    Raises:
        UserError: no such model, data or output; targets that do not fit it; examples whose outputs depend on who else
            is in the batch; a loader that shuffles.

    Source: Park et al. 2023; Charikar, Chen and Farach-Colton 2002.

    >>> import jax.numpy as jnp
    >>> x, y = jnp.array([[1.0, 2.0], [0.0, 1.0]]), jnp.array([1.0, 0.0])
    >>> found = gradient_features((lambda w, x: x @ w, jnp.ones(2)), (x, y), model_output="value")
    >>> found.features[0].tolist(), found.residuals[0].tolist()
    ([[1.0, 2.0], [0.0, 1.0]], [-2.0, -1.0])
    """
    law = law_of(model_output, loss)
    _check_order(data)
    with in_evaluation(unwrapped(model)):
        attached = outputs_of(model, law.output, data)
        sketch = _sketch(dimension, whole("seed", seed), attached.size)
        bytes_of_one = attached.size * attached.dtype.itemsize
        most = GRADIENTS // bytes_of_one
        attached.batches.size = max(1, min(whole("micro_batch", micro_batch, 1), most))
        models = [attached] if checkpoints is None else _with_weights(attached, model, checkpoints)
        parts = [
            _of_model(checkpoint, law, replace(sketch, model=i))
            for i, checkpoint in enumerate(models)
        ]
    features, values, residuals, curvatures = map(np.stack, zip(*parts, strict=True))
    return GradientFeatures(
        features, values, residuals, curvatures, attached.size, sketch.dimension, sketch.seed
    )


def _sketch(dimension: Any, seed: int, parameters: int) -> Sketch:
    if dimension is None or whole("dimension", dimension, 1) >= parameters:
        return Sketch(None, seed)
    if parameters > PARAMETERS:
        raise UserError(
            f"a count sketch has places for {PARAMETERS} weights, got {parameters}; give a part of the model, or "
            "freeze the others"
        )
    return Sketch(int(dimension), seed)


def _with_weights(attached: Subject, model: Any, checkpoints: Sequence[Any]) -> Iterator[Subject]:
    """Yield the subject with the weights of each checkpoint, of torch also with its buffers."""
    if not isinstance(checkpoints, Sequence) or not len(checkpoints):
        raise UserError(
            f"checkpoints are a list of weights, one entry for each training, got {shown(checkpoints)}; give for "
            "example [model.state_dict()]"
        )
    for checkpoint in checkpoints:
        later = checkpoint
        if is_torch_module(unwrapped(model)) and not is_torch_module(unwrapped(checkpoint)):
            later = copy.deepcopy(unwrapped(model))
            try:
                later.load_state_dict(checkpoint)
            except (RuntimeError, TypeError, AttributeError) as trouble:
                raise UserError(
                    f"a checkpoint of a torch module is its state dict or a module like it, got {shown(checkpoint)}: "
                    f"{str(trouble).splitlines()[0]}; give model.state_dict() after each training"
                ) from trouble
        with in_evaluation(unwrapped(later)):
            yield attached.now(later)


def _of_model(attached: Subject, law: Law, sketch: Sketch) -> tuple[NDArray, ...]:
    """Return features, values, residuals and curvatures of one model in one pass."""
    parts = []
    of_one: tuple[int, ...] = ()  # shape of the outputs of one example
    for batch, count in attached.batches:
        if not parts:
            outputs, targets = attached.outputs_on(batch)
            of_one = outputs.shape[1:]
            check_pair(law, outputs.shape, targets)
            _check_alone(attached, batch, outputs, count)
        values, rows, targets = attached.example_gradients(batch, law.output, sketch)
        check_pair(law, (count, *of_one), targets)
        if not np.isfinite(rows).all():
            raise UserError(
                f"the gradients of {attached.name} are not finite; take a checkpoint from before the divergence, or "
                "check the inputs for NaN"
            )
        parts.append((rows, values, *law.slopes(values, targets)))
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def _check_alone(attached: Subject, batch: Any, outputs: NDArray, count: int) -> None:
    """Refuse a model that gives a single example other outputs than the same example in a batch.

    Raises:
        UserError: examples interact, or the model draws random numbers.
    """
    size = np.abs(outputs).max(initial=0.0)
    for i in np.unique(np.linspace(0, count - 1, APART).astype(int)).tolist():
        with random_states(i):
            alone, _ = attached.outputs_on(taken(batch, slice(i, i + 1)))
        far = np.abs(alone[0] - outputs[i]).max(initial=0.0)
        if far > ROUNDING * np.finfo(attached.dtype).eps * size:
            raise UserError(
                f"outputs of {attached.name} change when other examples of the batch are left out, or from call to "
                f"call (by {far:.2g} of {size:.2g}), so that an example has no gradient of its own; give the model in "
                "evaluation mode"
            )


def _check_order(data: Any) -> None:
    """Refuse a loader of torch whose sampler draws the order of the examples.

    Raises:
        UserError: it does.
    """
    inner = getattr(getattr(data, "batch_sampler", None), "sampler", None)
    samplers = (getattr(data, "sampler", None), inner)
    if any(is_of(sampler, "torch", kind) for sampler in samplers for kind in SHUFFLING):
        raise UserError(
            "this loader shuffles, so that nobody knows which row is which example; give one with shuffle=False, or "
            "the arrays (x, y)"
        )


def check_alike(first: GradientFeatures, second: GradientFeatures) -> None:
    """Refuse features whose inner products mean nothing.

    Raises:
        UserError: of different numbers of models or weights, or of different projections.
    """
    if not isinstance(first, GradientFeatures) or not isinstance(second, GradientFeatures):
        other = second if isinstance(first, GradientFeatures) else first
        raise UserError(f"expected what gradient_features returns, got {shown(other)}")
    facts = [
        (len(side.features), side.parameters, side.dimension, side.seed) for side in (first, second)
    ]
    if facts[0] != facts[1]:
        names = ("models", "weights", "dimension", "seed")
        said = ", ".join(
            f"{name} {a} and {b}" for name, a, b in zip(names, *facts, strict=True) if a != b
        )
        raise UserError(
            f"features are compared where models and projection are the same, got {said}; call gradient_features with "
            "the same model, checkpoints, dimension and seed for both sets of examples"
        )
