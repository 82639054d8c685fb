"""The knobs of a reader's function that checks of several widths turn: widths and seeds, and what they must change."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from steepest.core.errors import UserError
from steepest.core.given import real, whole
from steepest.measurement._building import Builder, Built
from steepest.measurement.widths._coordinates import initial_weights

FEWEST = 3  # widths that a fitted exponent needs


def ordered(widths: Sequence[float]) -> tuple[float, ...]:
    """Return the widths in order.

    Raises:
        UserError: fewer than three, or some that are not positive and finite.

    >>> ordered([2, 0.5, 1, 1])
    (0.5, 1.0, 2.0)
    """
    if isinstance(widths, str):
        raise UserError(f"widths are a list of numbers, got {widths!r}; try [0.5, 1, 2, 4]")
    different = tuple(sorted({real("widths", width, "[0.5, 1, 2, 4]") for width in widths}))
    if len(different) < FEWEST or not all(0 < width < math.inf for width in different):
        raise UserError(
            f"a fitted power needs at least {FEWEST} different widths above 0, got "
            f"{' '.join(f'{width:g}' for width in widths) or 'none'}; try 0.5 1 2 4"
        )
    return different


def check_counts(**counts: int) -> None:
    """Refuse numbers of seeds, steps or examples below one."""
    for name, count in counts.items():
        whole(name, count, 1)


def runs_of(builder: Builder, seed: int, seeds: int) -> list[int | None]:
    """Return the seeds of a check; ``[None]`` of a function without ``seed``.

    Raises:
        UserError: a function without ``width``.
    """
    if "width" not in builder.knobs:
        raise UserError(
            f"{builder.where} has no width to turn; write def build(seed=0, width=1.0) and multiply each hidden size "
            "by it, such as int(128 * width)"
        )
    return list(range(seed, seed + seeds)) if "seed" in builder.knobs else [None]


def built_at(builder: Builder, width: float, seed: int | None, **knobs: float) -> Built:
    """Build one network, at its width and seed."""
    if seed is None:
        return builder(width=width, **knobs)
    return builder(width=width, seed=seed, **knobs)


def check_seed(builder: Builder, width: float, seeds: Sequence[int | None]) -> None:
    """Refuse a seed that changes nothing: intervals over seeds would be of one network."""
    if len(seeds) < 2:
        return
    first, second = (initial_weights(built_at(builder, width, seed)) for seed in seeds[:2])
    if first.shape == second.shape and np.array_equal(first, second):
        raise UserError(
            f"{builder.where} starts from the same weights with seed={seeds[0]} and seed={seeds[1]}; draw the initial "
            "weights from the seed, such as torch.manual_seed(seed)"
        )


def check_growth(counts: Sequence[int], widths: Sequence[float], where: str) -> None:
    """Refuse a width that changes nothing, by the number of weights at each."""
    if any(after <= before for before, after in pairwise(counts)):
        raise UserError(
            f"{where} gives {', '.join(map(str, counts))} weights at widths "
            f"{', '.join(f'{width:g}' for width in widths)}; multiply each hidden size by width"
        )
