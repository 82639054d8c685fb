"""Checks of a new model: its loss is a function of the weights, with the derivatives that it claims."""

import random
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement.adapters._batches import as_pair, picked, repeated
from steepest.measurement.adapters._generators import states_kept
from steepest.measurement.adapters._subject import Kind, Subject

EXAMPLES = 32  # of the check
NUMBERS = (
    2**20
)  # of their outputs at most: graphs in double precision hold some twenty times as many
SEED = 20_061_113  # of the first pass with other random numbers
PASSES = 4  # with other random numbers, where losses differ by no more than rounding
ELSEWHERE = 0.05  # by which each weight is moved for a second look
SINGLE = float(np.finfo(np.float32).eps)
STEPS = (1e-4, 1e-5, 1e-6, 1e-7)  # of central differences, relative to the size of the weights

DETACHED = (
    "outputs or loss are cut off from the weights (detach, no_grad, stop_gradient, argmax, .item()); give the loss "
    "that you descend on"
)
INSIDE = (
    "an operation without a second derivative (a custom autograd function, detach, spectral normalization in training "
    "mode) may be inside, or numbers so large that rounding is all that is left; take it out, scale the inputs, or let "
    "a Monitor record what each step has at hand"
)


def check_subject(subject: Subject, fixed: bool = False) -> None:
    """Pass again; compare products with the Hessian with differences of the gradient and with their transpose.

    Differences are taken on a few examples at several distances, and the nearest counts: a corner of ReLU between the
    two ends spoils one of them, a wrong second derivative all.

    Raises:
        UserError: losses that differ between two passes, are not finite, or whose second derivative is wrong.
    """
    first = subject.risk()
    if not np.isfinite(first):
        raise UserError(
            f"the loss of {subject.name} is {first}; check the inputs and the weights for NaN"
        )
    _same_every_time(subject, first, fixed)
    small = few(subject, _affordable(subject))
    if is_read(small) and is_read(_twice(small)):
        _mean_of_examples(small)
    else:  # vertices of a graph, of which the model reads all or none
        subject.batches.together = True
        small = subject
    try:  # in double precision differences are so short that they rarely reach a corner of ReLU
        small.precise().gradient()
        small = small.precise()
    except UserError:  # something inside insists on single precision
        pass
    _second_derivative(small, float(np.finfo(small.dtype).eps))


def _same_every_time(subject: Subject, first: float, fixed: bool) -> None:
    """Pass again with other random numbers, until a pass gives the same bits or losses differ by more than rounding.

    Random losses may be near each other by chance: of noise that moves them by 0.4 % one in thirty pairs is.
    """
    eps = np.finfo(subject.dtype).eps
    for seed in range(SEED, SEED + PASSES):
        with random_states(seed):
            # a copy: a graph that was kept would repeat the first pass
            again = (subject if fixed else subject.redrawn(seed)).at(subject.values()).risk()
        if again == first:
            return
        if not abs(first - again) <= 1e3 * eps * abs(first) + eps:
            raise UserError(
                f"the loss of {subject.name} was {first:.8g} and then {again:.8g} with other random numbers: model, "
                "loss or loader are random; call model.eval(), take noise and augmentation out, and let the loader "
                "give the same examples in every pass; of a module of torch noise='fixed' gives the same random "
                "numbers to every pass"
            )


@contextmanager
def random_states(seed: int) -> Iterator[None]:
    """Let Python, NumPy and torch draw the random numbers of a seed; put their states back afterwards."""
    with states_kept():
        random.seed(seed)
        np.random.seed(seed)
        torch = sys.modules.get("torch")
        if torch is not None:
            # generators of devices are not put back, and so not set
            torch.default_generator.manual_seed(seed)
        yield


def is_read(subject: Subject) -> bool:
    """Tell whether the model reads the first batch as it is cut."""
    try:
        subject._risk(subject.batches.first()[0])
    except UserError:
        return False
    return True


def few(subject: Subject, examples: int = EXAMPLES) -> Subject:
    """Return the same subject on the first few examples that count, at most as many as one batch has."""
    kind = type(subject.batches)
    if subject.batches.factors and not subject.batches.factors[0]:
        place = next(place for place, factor in enumerate(subject.batches.factors) if factor)
        with closing(iter(subject.batches)) as parts:
            source = _Once(next(islice(parts, place, None))[0])
    else:
        source = subject.batches.source
    batch, count = kind(source, min(examples, subject.batches.size)).first()
    small = subject.at(subject.values())
    small.batches = kind(_Once(batch), count)
    return small


def _affordable(subject: Subject) -> int:
    """Return how many examples the check takes: few where each has many outputs, as in language models."""
    if subject.normalizes:  # one example has no statistics
        return EXAMPLES
    try:
        numbers = few(subject, 1).numbers()
    except UserError:
        # one example may have no loss, and a loss of (params, batch) no outputs
        return EXAMPLES
    return max(1, min(EXAMPLES, NUMBERS // max(1, numbers)))


def on_rows(subject: Subject, rows: NDArray) -> Subject:
    """Return the same subject on some examples, by their increasing places in a pass over the data."""
    kind = type(subject.batches)
    small = subject.at(subject.values())
    small.batches = kind(_Once(picked(subject.batches, rows)), subject.batches.size)
    return small


def _mean_of_examples(subject: Subject) -> None:
    """Check that the loss is a mean: the same when examples come twice, and with one target for each output."""
    batch, _ = subject.batches.first()
    alone = subject.risk()
    grown = _twice(subject).risk()
    if alone and abs(grown / alone - 2) < 1e-3:
        raise UserError(
            "the loss is a sum over the examples, as it doubles when they come twice; take the mean"
        )
    if subject.is_noisy:  # the loss may draw other numbers for other targets
        return
    try:
        outputs, _ = subject._outputs(batch)
        targets = as_pair(batch)[1]
        shape = tuple(getattr(targets, "shape", outputs.shape))
        has_other_axes = shape != outputs.shape and np.prod(shape) == outputs.size
        if has_other_axes and not _is_local(subject, outputs, targets):
            aligned = targets.reshape(outputs.shape)
            is_broadcast = _is_local(subject, outputs, aligned)
        else:
            is_broadcast = False
    except UserError:  # the loss is of (params, batch), or takes no other shapes
        return
    if is_broadcast:
        raise UserError(
            f"outputs {outputs.shape} and targets {shape} are broadcast against each other by the loss, so that each "
            f"output is compared with the targets of all examples; give targets of shape {outputs.shape}, or let the "
            f"model return shape {shape}"
        )


def _twice(subject: Subject) -> Subject:
    """Return the subject on the examples of the first batch and on them again, as one batch."""
    batch, count = subject.batches.first()
    other = few(subject)
    other.batches = type(subject.batches)(_Once(repeated(batch)), 2 * count)
    return other


def _is_local(subject: Subject, outputs: NDArray, targets: Any) -> bool:
    """Tell whether the loss compares the first example's output with its own target alone.

    Then its derivative in this output stays when all other targets become this one.
    """
    same = targets[np.zeros(len(outputs), int)]
    first = subject.slopes(outputs, targets)[0]
    return np.allclose(first, subject.slopes(outputs, same)[0], 1e-4, 1e-9)


def rounding(subject: Subject, vector: NDArray, kind: Kind = "hessian") -> float:
    """Return by which share single precision moves a product with the curvature, beside the same one in double.

    Args:
        subject: whose curvature it is.
        vector: shape ``(p,)``, the direction.
        kind: which curvature.

    Returns:
        ``‖(H₃₂ − H₆₄) v‖ / ‖H₃₂ v‖``; zero of a subject in double precision, or which has no other.
    """
    if subject.dtype == np.float64:
        return 0.0
    try:
        exact = subject.precise().products(vector[None].astype(np.float64), kind)[0]
    except UserError:  # something inside insists on single precision
        return 0.0
    single = subject.products(vector[None], kind)[0]
    size = float(np.linalg.norm(single))
    return float(np.linalg.norm(single - exact)) / size if size else 0.0


class _Once:
    """One batch, however often it is asked for."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __iter__(self):
        return iter([self.batch])


def _check_attached(subject: Subject, direction: NDArray) -> None:
    """Check that a loss without any derivative does not depend on the weights either.

    At weights where its derivatives up to the second are zero, as where all weights of a deep linear network are zero,
    it has some beside them.

    Raises:
        UserError: one that has none there: something between weights and loss is detached.
    """
    if subject.gradient().any():
        return
    weights = subject.values()
    step = 1e-3 * (float(np.linalg.norm(weights)) or 1.0)
    moved = subject.at((weights + step * direction).astype(subject.dtype))
    if moved.risk() != subject.risk() and not moved.gradient().any():
        raise UserError(
            f"the loss of {subject.name} changes with the weights, but its derivatives are all zero: {DETACHED}"
        )


def _second_derivative(subject: Subject, eps: float) -> None:
    """Check that products with the Hessian are symmetric, and differences of gradients.

    Raises:
        UserError: they are not; where rounding hides them, or single precision does, with what helps against that.
    """
    try:
        _compare_products(subject, eps)
    except UserError:
        if subject.dtype == np.float32 and _is_right_in_double(subject):
            raise UserError(
                f"single precision leaves little but rounding of products with the Hessian of {subject.name}, as of "
                "inputs that are very large, while in double they are right; measure in double, model.double() with "
                "data in float64, or scale the inputs"
            ) from None
        raise


def _is_right_in_double(subject: Subject) -> bool:
    try:
        _compare_products(subject.precise(), float(np.finfo(np.float64).eps))
    except UserError:
        return False
    return True


def _resolved(subject: Subject, eps: float) -> float:
    """Return how much of a product with the Hessian the rounding of the gradient hides."""
    scale = float(np.linalg.norm(subject.values())) or 1.0
    return eps * float(np.linalg.norm(subject.gradient())) / scale


def _compare_products(subject: Subject, eps: float) -> None:
    rng = np.random.default_rng(0)
    weights = subject.values()
    u, v = (
        vector / np.linalg.norm(vector)
        for vector in rng.standard_normal((2, subject.size)).astype(subject.dtype)
    )
    of_u, of_v = subject.products(np.stack([u, v]))
    held = (subject.gradient() == 0) & (of_u == 0) & (of_v == 0)
    if held.any() and not held.all():
        # rows of padding, masked gradients: training never moves them, so that only the others are compared
        u, v = np.where(held, 0, u), np.where(held, 0, v)
        of_u, of_v = subject.products(np.stack([u, v]))
    size = max(float(np.linalg.norm(of_u)), float(np.linalg.norm(of_v)))
    if not size:
        _check_attached(subject, u)
    if not np.isfinite(size):
        raise UserError(
            f"products with the Hessian of {subject.name} are not finite at these weights: an operation has no second "
            "derivative where it is evaluated, such as a norm or sinc at zero; add a small number under the root, or "
            "move the weights or inputs off that place"
        )
    twist = abs(float(v @ of_u - u @ of_v))
    if 1e4 * eps * size < twist <= 10 * SINGLE * size:
        eps = SINGLE  # a part computes in single precision whatever the weights are, as losses of transformers do
    elif twist > 1e4 * eps * size:
        if twist <= _resolved(subject, eps):
            raise UserError(
                f"products with the Hessian of {subject.name} are lost in rounding at these weights, where its loss is "
                "all but flat, as of inputs that are very large; scale the inputs, or measure other weights"
            )
        raise UserError(
            f"the second derivative of {subject.name} is not symmetric, by {twist / size:.1e} of its size; {INSIDE}"
        )
    apart = _apart_from_differences(subject, of_v, v, eps)
    if apart is None:
        return
    # Where signals are tiny, a small step changes every gate and differences tell nothing: then other weights must
    # do, at which a detached operation is as detached.
    noise = rng.standard_normal(subject.size)
    elsewhere = subject.at((weights + ELSEWHERE * noise).astype(subject.dtype))
    product = elsewhere.products(v[None])[0]
    if np.linalg.norm(product) and _apart_from_differences(elsewhere, product, v, eps) is None:
        return
    raise UserError(
        f"the second derivative of {subject.name} is not that of its gradient: a product with the Hessian is "
        f"{apart:.1e} from a difference of gradients, its size is {np.linalg.norm(of_v):.1e}; {INSIDE}"
    )


def _apart_from_differences(
    subject: Subject, product: np.ndarray, v: np.ndarray, eps: float
) -> float | None:
    """Return how far a product with the Hessian is from all differences of gradients; None if one agrees."""
    weights = subject.values()
    scale = float(np.linalg.norm(weights)) or 1.0
    smallest = np.inf
    noise = np.inf
    for step in STEPS:
        h = step * scale * (1.0 if eps < SINGLE else 100.0)
        ends = [
            subject.at((weights + sign * h * v).astype(subject.dtype)).gradient()
            for sign in (1, -1)
        ]
        distance = float(np.linalg.norm((ends[0] - ends[1]) / (2 * h) - product))
        if distance < smallest:
            smallest = distance
            noise = 10 * eps * float(np.linalg.norm(ends[0])) / h
    agrees = smallest <= 0.02 * float(np.linalg.norm(product)) + 10 * noise
    return None if agrees else smallest
