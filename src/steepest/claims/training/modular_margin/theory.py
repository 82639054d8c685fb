"""The largest margin of quadratic networks on a + b mod p, and the size at which decay stops them.

A neuron adds w(c)(u(a) + v(b))² to the output of label c; its size is the cube of the norm of (u, v, w). The smallest
margin is at most the mean one, over examples and wrong labels. In that mean a constant part of w drops out, and with it
the squares of u and of v. What 2u(a)v(b)w(c) leaves is p/(p − 1) times its mean over c = a + b. By Fourier's series it
is largest, for a given size, where u, v and w have one frequency alone, the same, and a third of the squares each. The
mean is then ½(2/3)^{3/2}/(√p (p − 1)) for a size of one. The smallest margin is as large where margins are the same for
all wrong labels, which asks for equal weights of all frequencies.
"""

import numpy as np

from steepest.nn.types import Values


def largest_margin(p: Values) -> Values:
    """Return γ, the largest margin at a size of one.

    >>> round(float(largest_margin(5)), 6)
    0.030429
    """
    # ½(2/3)^(3/2) = √(2/27)
    return np.sqrt(2 / 27) / (np.sqrt(p) * (np.asarray(p) - 1))


def one_frequency(p: Values) -> Values:
    """Return the largest margin with a single frequency, whose mean is as large, but not its smallest margin."""
    p = np.asarray(p)
    # outputs ∝ cos 2πk(a + b − c)/p: the nearest wrong label lacks 1 − cos 2π/p, where the mean
    # over all p − 1 of them is p/(p − 1)
    return largest_margin(p) * (1 - np.cos(2 * np.pi / p)) * (p - 1) / p


def size(p: Values, decay: Values) -> Values:
    """Return the size N that minimizes log(1 + (p − 1)exp(−γN)) + λN.

    No network has less risk plus λ times its size. All margins of the best one are alike, and the mean of the convex
    function of margins is at least that of their mean, which γN bounds.

    >>> bool(size(5, 1e-4) > size(5, 1e-3) > 0)
    True
    """
    margin = largest_margin(p)
    # zero slope: (p − 1)e^(−γN)(γ − λ) = λ
    return np.log((np.asarray(p) - 1) * (margin / decay - 1)) / margin


def size_of_slight_decay(p: Values, decay: Values) -> Values:
    """Return that size to leading order in the decay."""
    margin = largest_margin(p)
    return np.log((np.asarray(p) - 1) * margin / decay) / margin


def no_size_from(p: Values) -> Values:
    """Return the decay from which on no network is better than none."""
    p = np.asarray(p)
    # the slope at N = 0 is λ − γ(p − 1)/p
    return largest_margin(p) * (p - 1) / p
