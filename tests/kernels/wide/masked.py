"""Both kernels of inputs some of whose positions do not exist, by one matrix for each input, tap and step.

No code of the library's, and none of ``brute``. A step reads positions by matrices S_t, one for each tap, of each
input: ``K' = Σ_t S_t K S'_tᵀ``. What does not exist has no row and no column there. Steps are those of ``brute``.
"""

import itertools
import math

import numpy as np

from tests.kernels.wide.brute import DUALS


class Side:
    """One input: its space, which positions exist in a line, and its own kernels for variances and weights."""

    def __init__(self, space, exists):
        self.space = space
        self.exists = exists

    @property
    def at(self):
        return list(itertools.product(*map(range, self.space)))


def kernels(steps, x, y, masks, c_w, c_b):
    """NNGP and NTK of two inputs ``(height, width, channels)``, whose masks are ``(height, width)``."""
    sides = []
    for image, mask in zip((x, y), masks, strict=True):
        sides.append(Side(image.shape[:-1], mask.ravel()))
    flat = [
        np.where(side.exists[:, None], image.reshape(len(side.exists), -1), 0)
        for image, side in zip((x, y), sides, strict=True)
    ]
    pairs = {}
    for i, j in ((0, 0), (0, 1), (1, 1)):
        k = flat[i] @ flat[j].T / x.shape[-1]
        pairs[i, j] = (k, np.zeros_like(k))
    pairs, _ = run(steps, pairs, sides, c_w, c_b)
    k, theta = pairs[0, 1]
    return k.squeeze(), theta.squeeze()


def run(steps, pairs, sides, c_w, c_b):
    for name, *options in steps:
        if name == "conv":
            pairs, sides = convolved(pairs, sides, *options, c_w, c_b)
        elif name == "dense":
            stay = [[np.diag(side.exists.astype(float))] for side in sides]
            pairs = linear(pairs, stay, sides, 1, c_w, c_b)
        elif name in DUALS:
            pairs = activated(pairs, sides, DUALS[name])
        elif name in ("pool", "mean"):
            pairs, sides = pooled(pairs, sides, *options)
        elif name == "flatten":
            pairs = {
                ij: tuple(np.array([[np.trace(a) / len(a)]]) for a in both)
                for ij, both in pairs.items()
            }
            sides = [Side((), np.array([True])) for _ in sides]
        elif name == "lines":
            rows, *outputs = options
            pairs, sides = weighted(pairs, sides, (rows, rows), *outputs)
        elif name == "graphs":
            pairs, sides = weighted(pairs, sides, *options, sides[0].space, True)
        elif name == "attend":
            pairs = attended(pairs, sides, *options, c_w, c_b)
        elif name == "norm":
            roots = [
                np.sqrt(np.where(side.exists, np.diag(pairs[i, i][0]), 1))
                for i, side in enumerate(sides)
            ]
            pairs = {
                (i, j): tuple(a / np.outer(roots[i], roots[j]) for a in both)
                for (i, j), both in pairs.items()
            }
        elif name == "together":
            roots = [together(side, pairs[i, i][0], *options) for i, side in enumerate(sides)]
            pairs = {
                (i, j): tuple(a / np.outer(roots[i], roots[j]) for a in both)
                for (i, j), both in pairs.items()
            }
        elif name == "add":
            branches = [run(branch, pairs, sides, c_w, c_b) for branch in options]
            sides = branches[0][1]
            pairs = {
                ij: tuple(sum(branch[0][ij][a] for branch in branches) for a in range(2))
                for ij in pairs
            }
        else:
            raise ValueError(name)
    return pairs, sides


def linear(pairs, taps, sides, volume, c_w, c_b):
    """Weights behind matrices that read positions; ``volume`` taps share the variance."""
    after = {}
    for (i, j), (k, theta) in pairs.items():
        both = np.outer(sides[i].exists, sides[j].exists)
        mean = sum(s @ k @ t.T for s, t in zip(taps[i], taps[j], strict=True)) / volume
        carried = sum(s @ theta @ t.T for s, t in zip(taps[i], taps[j], strict=True)) / volume
        after[i, j] = (both * (c_b + c_w * mean), both * (1 + c_w * mean + c_w * carried))
    return after


def geometry(space, size, stride, padding):
    """Numbers of outputs, and of positions missing before the first."""
    outputs = []
    edges = []
    for n in space:
        outputs.append((n - size) // stride + 1 if padding == "none" else math.ceil(n / stride))
        missing = 0 if padding == "none" else max((outputs[-1] - 1) * stride + size - n, 0)
        edges.append(missing // 2)
    return outputs, edges


def stands(side, output, stride):
    """Whether an output stands at an existing position, one of ``stride`` many."""
    place = {p: i for i, p in enumerate(side.at)}
    block = itertools.product(*(range(a * stride, (a + 1) * stride) for a in output))
    return any(side.exists[place[q]] for q in block if q in place)


def convolved(pairs, sides, size, stride, padding, c_w, c_b):
    behind = []
    taps = []
    for side in sides:
        outputs, edges = geometry(side.space, size, stride, padding)
        place = {p: i for i, p in enumerate(side.at)}
        there = []
        for p in itertools.product(*map(range, outputs)):
            if padding == "none":
                reads = itertools.product(*(range(a * stride, a * stride + size) for a in p))
                there.append(all(side.exists[place[q]] for q in reads))
            else:
                there.append(stands(side, p, stride))
        after = Side(tuple(outputs), np.array(there))
        of_side = []
        for offset in itertools.product(range(size), repeat=len(side.space)):
            matrix = np.zeros((len(there), len(place)))
            for i, p in enumerate(after.at):
                q = tuple(a * stride + o - e for a, o, e in zip(p, offset, edges, strict=True))
                if padding == "circular":
                    q = tuple(a % n for a, n in zip(q, side.space, strict=True))
                if q in place and side.exists[place[q]]:
                    matrix[i, place[q]] = 1
            of_side.append(matrix)
        behind.append(after)
        taps.append(of_side)
    return linear(pairs, taps, behind, size ** len(sides[0].space), c_w, c_b), behind


def pooled(pairs, sides, size=None, stride=None, padding="none", divisor="existing"):
    """Sums over windows of what exists, or over all positions without a size, divided by one of three numbers."""
    behind = []
    means = []
    for side in sides:
        if size is None:
            outputs = ()
            rows = [side.exists.astype(float)]
            volume = len(side.exists)
            there = [True]
        else:
            outputs, rows, there = windows(side, size, stride, padding)
            volume = size ** len(side.space)
        sums = np.array(rows)
        divisors = {"existing": np.maximum(sums.sum(1), 1), "volume": volume, "one": 1}
        means.append((sums.T / divisors[divisor]).T)
        behind.append(Side(tuple(outputs), np.array(there)))
    after = {
        (i, j): tuple(means[i] @ a @ means[j].T for a in both) for (i, j), both in pairs.items()
    }
    return after, behind


def together(side, k, axes):
    """The deviation of positions that have one in common, those that exist; channels have mean zero."""
    exists = side.exists.reshape(side.space)
    counts = np.maximum(exists.sum(axes, keepdims=True), 1)
    variance = (np.diag(k).reshape(side.space) * exists).sum(axes, keepdims=True) / counts
    return np.sqrt(np.where(exists, variance, 1)).ravel()


def weighted(pairs, sides, rows, outputs, keeps):
    """Weighted sums of positions in one line, by the rows of each side; they exist where they stand or read any."""
    behind = []
    for side, matrix in zip(sides, rows, strict=True):
        there = side.exists if keeps else (matrix != 0) @ side.exists > 0
        behind.append(Side(outputs, there))
    after = {}
    for (i, j), both in pairs.items():
        exists = np.outer(behind[i].exists, behind[j].exists)
        after[i, j] = tuple(exists * (rows[i] @ a @ rows[j].T) for a in both)
    return after, behind


def windows(side, size, stride, padding):
    """Numbers of outputs, how often each output reads each existing position, and which outputs exist."""
    outputs, edges = geometry(side.space, size, stride, padding)
    place = {p: i for i, p in enumerate(side.at)}
    rows = []
    there = []
    for p in itertools.product(*map(range, outputs)):
        row = np.zeros(len(place))
        for offset in itertools.product(range(size), repeat=len(side.space)):
            q = tuple(a * stride + o - e for a, o, e in zip(p, offset, edges, strict=True))
            if padding == "circular":
                q = tuple(a % n for a, n in zip(q, side.space, strict=True))
            if q in place and side.exists[place[q]]:
                row[place[q]] += 1
        rows.append(row)
        there.append(row.any() and (padding == "none" or stands(side, p, stride)))
    return outputs, rows, there


def softmax(products):
    return np.exp(products) / np.exp(products).sum()


def attended(pairs, sides, sharpness, tied, *options):
    """Weights of each input over the keys that exist, one query after the other; softmax without another function."""
    *given, c_w, c_b = options
    weigh = given[0] if given else softmax
    weights = []
    for i, side in enumerate(sides):
        rows = []
        for row in pairs[i, i][0]:
            rows.append(np.zeros(len(row)))
            rows[-1][side.exists] = weigh(sharpness * c_w * row[side.exists] * tied)
        weights.append(np.array(rows) * side.exists[:, None])
    after = {}
    for (i, j), (k, theta) in pairs.items():
        both = np.outer(sides[i].exists, sides[j].exists)
        value_k = c_b + c_w * k
        value_theta = 1 + c_w * k + c_w * theta
        mixed_k = weights[i] @ value_k @ weights[j].T
        mixed_theta = weights[i] @ value_theta @ weights[j].T
        after[i, j] = (both * (c_b + c_w * mixed_k), both * (1 + c_w * mixed_k + c_w * mixed_theta))
    return after


def activated(pairs, sides, dual):
    after = {}
    for (i, j), (k, theta) in pairs.items():
        value = np.zeros_like(k)
        slope = np.zeros_like(k)
        for p, q in itertools.product(*(np.flatnonzero(sides[s].exists) for s in (i, j))):
            variances = pairs[i, i][0][p, p], pairs[j, j][0][q, q]
            value[p, q], slope[p, q] = dual(*variances, k[p, q])
        after[i, j] = (value, slope * theta)
    return after
