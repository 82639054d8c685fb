"""The linear datamodeling score: whether scores tell how outputs change when models are trained again."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError
from steepest.core.intervals import Interval
from steepest.measurement.attribution._influence import Attribution, as_subsets
from steepest.statistics import pseudo_values, rank_correlation
from steepest.statistics._quantiles import student_quantile

FEWEST = 4  # subsets of which ranks are compared


@dataclass(frozen=True, eq=False)
class DatamodelingScore:
    """Rank correlations of predicted with retrained outputs.

    Attributes:
        value: mean over targets.
        interval: of it, for other subsets and other targets like these.
        by_target: of each target, shape ``(t,)``.
    """

    value: float
    interval: Interval
    by_target: Float[np.ndarray, " t"]


def linear_datamodeling_score(
    scores: Attribution | ArrayLike,
    subsets: ArrayLike,
    outputs: ArrayLike,
    *,
    level: float = 0.95,
) -> DatamodelingScore:
    r"""Compare the outputs that scores predict for trainings on random subsets with outputs of such trainings.

    For each target x it is Spearman's correlation over subsets S of Σ_{i ∈ S} τ_i(x) with the output at x of models
    trained on S, and the value is its mean over targets.

    The interval counts two sources. Which subsets were drawn counts by the jackknife over subsets, which all targets
    share; which targets were, by the spread of their correlations. The second holds a part of the first, so the
    interval is rather too wide. Noise of the trainings lowers the value itself: take the mean output of several
    trainings for each subset.

    Args:
        scores: of ``attribute``, or of another method, an array ``(t, n)`` of t targets and n training examples.
        subsets: which examples each training saw, True or False, shape ``(s, n)``; usually random halves.
        outputs: the model outputs at the targets after these trainings, ``(s, t)``: margins, or values.
        level: of the interval.

    Raises:
        UserError: shapes that do not belong together, fewer than four subsets, a target with equal outputs or
            predictions in all trainings, numbers that are not finite.

    Source: Park et al. 2023; Ilyas et al. 2022.

    >>> rng = np.random.default_rng(0)
    >>> effects, subsets = rng.normal(size=(5, 40)), rng.random((30, 40)) < 0.5
    >>> linear_datamodeling_score(effects, subsets, np.exp(subsets @ effects.T)).value  # ranks see no exponential
    1.0
    """
    table = np.asarray(scores.scores if isinstance(scores, Attribution) else scores, float)
    retrained = np.asarray(outputs, float)
    if table.ndim != 2:
        raise UserError(
            f"scores are an array of targets and training examples, (t, n), got shape {table.shape}; give the "
            "Attribution, or scores.T if examples come first"
        )
    masks = as_subsets(subsets, table.shape[1])
    if retrained.shape != (len(masks), len(table)):
        raise UserError(
            f"outputs need a row for each of {len(masks)} subsets and a column for each of {len(table)} targets, got "
            f"shape {retrained.shape}; give the mean over trainings on one subset, and outputs.T if targets come first"
        )
    if len(masks) < FEWEST:
        raise UserError(
            f"a rank correlation over subsets needs at least {FEWEST} of them, got {len(masks)}; train on 50 or more"
        )
    predicted = masks @ table.T
    by_target = _correlations(np.stack([predicted, retrained], 1))
    if not np.isfinite(by_target).all():
        target = int(np.flatnonzero(~np.isfinite(by_target))[0])
        raise UserError(
            f"target {target} has no order: its outputs or predictions are the same for all subsets, or not finite; "
            "leave it out, or look for trainings that diverged"
        )
    return _with_interval(predicted, retrained, by_target, level)


def _with_interval(
    predicted: NDArray, retrained: NDArray, by_target: NDArray, level: float
) -> DatamodelingScore:
    pairs = np.stack([predicted, retrained], 1)  # (s, 2, t)
    of_subsets = pseudo_values(lambda rows: _correlations(rows).mean(), pairs)
    variance = of_subsets.var(ddof=1) / len(of_subsets)
    targets = len(by_target)
    freedom = len(of_subsets) - 1
    if targets > 1:
        variance += by_target.var(ddof=1) / targets
        freedom = min(freedom, targets - 1)
    half = student_quantile(level, freedom) * float(np.sqrt(variance))
    value = float(by_target.mean())
    how = f"{level:.0%} over {len(of_subsets)} subsets" + f" and {targets} targets" * (targets > 1)
    return DatamodelingScore(
        value, Interval(max(-1.0, value - half), min(1.0, value + half), how), by_target
    )


def _correlations(pairs: NDArray) -> NDArray:
    """Return Spearman's correlation over subsets for each target, of ``(s, 2, t)``."""
    return rank_correlation(pairs[:, 0].T, pairs[:, 1].T)
