"""Measure a user's model."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from steepest.core.errors import UserError, nearest
from steepest.core.given import real, shown, whole
from steepest.measurement._adapter_rank import adapters
from steepest.measurement._clipping import with_clipping
from steepest.measurement._context import Context
from steepest.measurement._findings import findings
from steepest.measurement._fingerprint import digest_of
from steepest.measurement._optimizer import Optimizer, optimizer_of
from steepest.measurement._precision import double_precision
from steepest.measurement._quantities import DEFAULT, QUANTITIES, chosen
from steepest.measurement._report import Finding, Reading, Report
from steepest.measurement.adapters import KINDS, Kind, Noise, Subject, normalizing_layers, unwrapped
from steepest.measurement.adapters import subject as make_subject

NOT_MEASURED = "not measured"
Statistics = Literal["batch", "running"]
STATISTICS = ("batch", "running")


def measure(
    model: Any,
    loss: Any = None,
    data: Any = None,
    *,
    what: Sequence[str] | None = None,
    lr: float | None = None,
    momentum: float = 0.0,
    optimizer: Any = None,
    weight_decay: float | None = None,
    batch: int | None = None,
    curvature: Kind = "hessian",
    since: Any = None,
    micro_batch: int = 1024,
    features: Any = None,
    held_out: Any = None,
    thorough: bool = False,
    statistics: Statistics = "batch",
    noise: Noise = "refused",
    descents: int = 0,
    stationary: bool = True,
    seed: int = 0,
    watch: Callable[[str], None] = lambda stage: None,
) -> Report:
    """Measure the theory's quantities of your own model, with errors, and beside them what theory says.

    Args:
        model: a ``Subject``, a ``torch.nn.Module``, a pair ``(apply, params)`` of JAX, or a model of flax, equinox or
            haiku; see ``steepest.measurement.adapters.subject``. It stays as it is.
        loss: mean over a batch, of ``(outputs, targets)`` or of ``(params, batch)``.
        data: a pair of arrays or an iterable of batches; see ``steepest.measurement.adapters.subject``.
        what: ids of quantities; without it those that findings rest on, as far as they make sense for this model,
            which a note says of the others.
        lr: your step size η, to compare the sharpness with 2/η.
        momentum: heavy-ball momentum β, which makes it 2(1+β)/η.
        optimizer: instead of these, your optimizer of torch, or a list of several; or the pair ``(transformation,
            state)`` of optax. With Adam the sharpness in its own coordinates is compared with 38/η.
        weight_decay: λ, in the gradient; an optimizer says its own. None if you do not say it.
        batch: examples in each of your batches, for their noise; without it that of a loader's batches.
        curvature: of which matrix: ``"hessian"``, ``"gauss-newton"`` or ``"fisher"``, the empirical one.
        since: an earlier checkpoint, to measure the drift from: a model like this one, its parameters, a state dict, or
            a flat vector.
        micro_batch: examples evaluated at once, at most.
        features: see ``steepest.measurement.adapters.subject``.
        held_out: examples that the model was not trained on, as ``data``: risk and errors there tell memorizing.
        thorough: whether all quantities are measured where ``what`` does not say which.
        statistics: of the batch normalization of a module: ``"batch"``, the means and variances of batches that are the
            same in every pass, as the loss has them that is descended; or ``"running"``, those of evaluation mode.
            Batches are those of a loader; arrays are cut into batches of ``batch`` examples. Held-out examples and
            distances of inputs are always measured with running statistics, as the network is used.
        noise: whether a module or loss that draws random numbers is ``"refused"``; or ``"fixed"``, the same numbers for
            a batch in every pass, so that one draw stands for all: of a variational autoencoder, a diffusion model,
            or dropout in training mode.
        descents: how many step sizes are tried in short descents from the weights as they are, on copies of them, to
            see which ends lowest. Each descends twice.
        stationary: whether data and targets of the loss stay as they are while the network changes. They do not in
            reinforcement learning, in a generator and its critic, or in self-training: there a loss that falls is no
            progress, so that no descents are tried and nothing is said of what was learned.
        seed: of probes, starting vectors, samples of the examples and batches.
        watch: called with the id of each quantity as it starts.

    Raises:
        UserError: an unknown quantity; quantities of which none exists for this model (a note says why, where others
            do); whatever ``subject`` refuses.

    >>> import jax.numpy as jnp
    >>> x, y = jnp.array([[1.0, 0.0], [0.0, 2.0]]), jnp.array([1.0, 1.0])
    >>> squared = lambda f, y: ((f - y) ** 2).mean() / 2
    >>> report = measure((lambda w, x: x @ w, jnp.zeros(2)), squared, (x, y), what=["sharpness"], lr=0.5)
    >>> report["sharpness"].interpretation
    'your step size is 0.50 of the stable limit, 1'
    """
    started = time.perf_counter()
    names = None if what is None else chosen(what)
    if names is None and thorough:
        names = tuple(name for name in QUANTITIES if name != "drift" or since is not None)
    if not callable(watch):
        raise UserError(
            f"watch is a function of the id of each quantity, got {shown(watch)}; try watch=print"
        )
    watch("checking derivatives")
    checked_statistics(statistics)
    _check_descents(descents)
    if not isinstance(stationary, bool):
        raise UserError(f"stationary is True or False, got {shown(stationary)}")
    _check_settings(lr, momentum, weight_decay, batch, seed)
    whole("micro_batch", micro_batch, 1)
    subject = (
        model
        if isinstance(model, Subject)
        else make_subject(
            model,
            loss,
            data,
            micro_batch=micro_batch,
            features=features,
            normalizing=normalizing_layers(model) if statistics == "batch" else (),
            batch=batch,
            noise=noise,
        )
    )
    options = {"lr": lr, "momentum": momentum, "optimizer": optimizer, "curvature": curvature}
    options |= {"weight_decay": weight_decay, "batch": batch}
    options |= {"since": since, "seed": seed, "watch": watch, "descents": descents}
    options["stationary"] = stationary
    unseen = _held_out(model, loss, held_out, micro_batch, features, noise)
    report, _ = report_on(subject, names, held_out=unseen, find=True, **options)
    return replace(
        report,
        seconds=round(time.perf_counter() - started, 3),
        data=digest_of(subject.batches),
        held_out="" if unseen is None else digest_of(unseen.batches),
    )


def checked_statistics(statistics: Any) -> Statistics:
    """Return them, if there are such.

    Raises:
        UserError: others.
    """
    if statistics not in STATISTICS:
        raise UserError(
            f"there are no statistics {statistics!r}; {nearest(str(statistics), STATISTICS)}"
        )
    return statistics


def _check_descents(descents: Any) -> None:
    if isinstance(descents, bool) or not isinstance(descents, int) or descents < 0:
        raise UserError(
            f"descents is a whole number of short descents to try, got {descents!r}; 3 to 5 are usual"
        )


def _check_settings(lr: Any, momentum: Any, weight_decay: Any, batch: Any, seed: Any) -> None:
    """Check the numbers that say how the model is trained.

    Raises:
        UserError: one that is no number.
    """
    settings = {
        "lr": (lr, "0.1"),
        "momentum": (momentum, "0.9"),
        "weight_decay": (weight_decay, "1e-4"),
    }
    for name, (value, example) in settings.items():
        if value is not None:
            real(name, value, example)
    if batch is not None:
        whole("batch", batch, 1)
    whole("seed", seed)


def report_on(
    subject: Subject,
    what: Sequence[str] | None,
    *,
    lr: float | None = None,
    momentum: float = 0.0,
    optimizer: Any = None,
    weight_decay: float | None = None,
    batch: int | None = None,
    curvature: Kind = "hessian",
    since: Any = None,
    descents: int = 0,
    stationary: bool = True,
    seed: int = 0,
    start: np.ndarray | None = None,
    held_out: Subject | None = None,
    find: bool = False,
    tolerant: bool = False,
    watch: Callable[[str], None] = lambda stage: None,
) -> tuple[Report, np.ndarray | None]:
    """Report on a subject that has been checked; also say where Lanczos should start next time.

    If it is tolerant, a quantity that was asked for and does not exist is a note, as it is without ``what``. Findings
    are drawn if they are asked for with ``find``.
    """
    if curvature not in KINDS:
        raise UserError(f"there is no curvature {curvature!r}; {nearest(str(curvature), KINDS)}")
    _check_settings(lr, momentum, weight_decay, batch, seed)
    optimizer = optimizer_of(optimizer, subject, lr, momentum, weight_decay)
    started = time.perf_counter()
    passes = subject.passes
    if what is None or {"sharpness", "descents"} & set(what):
        optimizer = with_clipping(optimizer, subject, batch, seed)
    names = what or [*DEFAULT, *_where_there_are(subject, optimizer, since)]
    if descents and "descents" not in names:
        names = [*names, "descents"]
    rng = np.random.default_rng(seed)
    since = _flat(subject, since)
    several = "spectrum" in names
    context = Context(
        subject,
        rng,
        optimizer,
        since,
        start,
        curvature,
        several,
        seed,
        batch,
        held_out,
        descents,
        stationary,
    )
    lines: list[Reading] = []
    troubles: list[UserError] = []
    for name in names:
        watch(name)
        try:
            with double_precision():  # the subject keeps its own
                readings = QUANTITIES[name](context)
        except UserError as trouble:
            troubles.append(trouble)
            readings = [Reading(name, np.nan, interpretation=f"{NOT_MEASURED}: {trouble}")]
        lines += [replace(reading, id=name) for reading in readings]
    if len(troubles) == len(names) and not tolerant:  # otherwise what was measured is worth having
        raise troubles[0]
    examples = sum(count for _, count in subject.batches)
    drawn: tuple[Finding, ...] = ()
    if find:
        watch("findings")
        with double_precision():
            drawn = findings(context, lines)
    seconds = round(time.perf_counter() - started, 3)
    spent = subject.passes - passes
    made = Report(subject.name, subject.size, examples, tuple(lines), spent, seconds, drawn)
    return made, context.top.vectors.sum(0) if "top" in vars(context) else start


def _where_there_are(subject: Subject, optimizer: Optimizer, since: Any) -> Iterator[str]:
    """Yield the quantities that are measured without being asked for where a model or its training has them."""
    if since is not None:
        yield "drift"
    if optimizer.update is not None:
        yield "updates"
    if adapters(subject):
        yield "adapter-rank"


def _held_out(
    model: Any, loss: Any, held_out: Any, micro_batch: int, features: Any, noise: Noise
) -> Subject | None:
    """Attach to the model on its held-out examples; the checks were made on the others."""
    if held_out is None:
        return None
    if isinstance(model, Subject):
        raise UserError("held-out examples need the model and its loss themselves, not a Subject")
    return make_subject(
        model,
        loss,
        held_out,
        micro_batch=micro_batch,
        features=features,
        check=False,
        normalizing=(),
        noise=noise,
    )


def _flat(subject: Subject, since: Any) -> np.ndarray | None:
    """Return a checkpoint as a flat vector in the subject's order."""
    if since is None:
        return None
    if hasattr(since, "state_dict"):  # a module of torch
        since = unwrapped(since).state_dict()
    try:
        flat = (
            np.asarray(since, subject.dtype) if hasattr(since, "shape") else subject.flatten(since)
        )
    except UserError:
        raise
    except Exception as trouble:  # whatever a framework says of what is no tree of arrays
        raise UserError(
            "since is an earlier checkpoint: a model like this one, its parameters, a state dict or a flat vector, got "
            f"{shown(since)}; read a file with steepest.measurement.load_checkpoint"
        ) from trouble
    if flat.shape != (subject.size,) or not np.isfinite(flat).all():
        raise UserError(
            f"the checkpoint has {flat.size} weights, {subject.name} has {subject.size}, all of them finite"
        )
    return flat
