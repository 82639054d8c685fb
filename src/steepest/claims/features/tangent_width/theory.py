"""When the two bits of XOR are told apart at a pattern of the other bits, and how often a random gate tells them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

CORNERS = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
"""Values of the two bits of the label."""


def chance_of_a_switch(d: ArrayLike) -> NDArray:
    r"""Return how often the two bits switch an isotropic gate at one pattern: p_d = 4/π arcsin(1/√d).

    With c² = (d − 2)/2, a gate is not switched if two normal numbers are both smaller than c times a third one. These
    are two opposite pyramids over a square, of the solid angle 4 arcsin(c²/(1 + c²)) each.
    """
    return 4 / np.pi * np.arcsin(1 / np.sqrt(d))


def width_for_every_pattern(gates: NDArray, switches: int = 1, seen: bool = True) -> float:
    """Return the fewest first gates that see all corners and are switched by the two bits, at every pattern.

    Args:
        gates: w, shape ``(most, d)``.
        switches: how many gates must be switched at each pattern.
        seen: whether each of the four corners must be seen by a gate, too.
    """
    of_rest = gates[:, 2:] @ _patterns(gates.shape[1] - 2).T
    # the two bits add ±w₁ ± w₂: they change the sign where the rest is |w₁| + |w₂| at most
    reach = np.abs(gates[:, :2]).sum(1)[:, None]
    done = (np.abs(of_rest) <= reach).cumsum(0) >= switches
    if seen:
        of_bits = gates[:, :2] @ CORNERS.T
        active = of_rest[:, :, None] + of_bits[:, None] >= 0
        done &= np.logical_or.accumulate(active).all(-1)
    return first(done.all(1))


def width_for_first_bit(gates: NDArray) -> float:
    """Return the fewest first gates of which the first bit alone switches one at every pattern of all other bits."""
    of_rest = gates[:, 1:] @ _patterns(gates.shape[1] - 1).T
    switched = np.abs(of_rest) <= np.abs(gates[:, :1])
    return first(np.logical_or.accumulate(switched).all(1))


def first(done: ArrayLike) -> float:
    """Return the number of the first gate with which it is done; infinite if it never is."""
    done = np.asarray(done)
    return float(done.argmax() + 1) if done.any() else np.inf


def _patterns(bits: int) -> NDArray:
    """Return all patterns ±1 of some bits, ``(2^bits, bits)``."""
    numbers = np.arange(2**bits)[:, None]
    # bit 0 is +1 and bit 1 is −1
    return 1 - 2 * (numbers >> np.arange(bits) & 1)
