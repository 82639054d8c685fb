"""The recursion of both kernels by loops over positions, in NumPy: no code, no layout and no names of the library's.

A network is a list of steps: ``("conv", size, stride, padding)``, ``("relu",)``, ``("erf",)``, ``("tanh",)``,
``("pool", size, stride)``, ``("flatten",)``, ``("mean",)``, ``("dense",)``, ``("norm",)``, ``("add", [steps], …)``,
``("local", size, stride, padding)``, ``("beside", (share, [steps]), …)``, ``("times", [steps], …)``, ``("mix", rows)``,
``("attend", sharpness, tied)``, ``("up", size, stride, padding)``, ``("together", axes)``,
``("drop", rate)``.
NTK parameterization with biases: every linear step has c_w, c_b, t_w = c_w, t_b = 1.
"""

import math

import numpy as np


def relu(a, b, c):
    rho = max(-1.0, min(1.0, c / math.sqrt(a * b)))
    theta = math.acos(rho)
    value = math.sqrt(a * b) * (math.sin(theta) + (math.pi - theta) * rho) / (2 * math.pi)
    return value, (math.pi - theta) / (2 * math.pi)


def erf(a, b, c):
    root = math.sqrt((1 + 2 * a) * (1 + 2 * b))
    value = 2 / math.pi * math.asin(2 * c / root)
    return value, 4 / math.pi / math.sqrt(root**2 - 4 * c**2)


_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(160)


def tanh(a, b, c):
    """By a product of two Gauss–Hermite rules."""
    rho = c / math.sqrt(a * b)
    u = math.sqrt(a) * _NODES[:, None]
    v = math.sqrt(b) * (rho * _NODES[:, None] + math.sqrt(max(0.0, 1 - rho**2)) * _NODES[None])
    weights = _WEIGHTS[:, None] * _WEIGHTS[None] / (2 * math.pi)
    slope = lambda z: 1 - np.tanh(z) ** 2
    return (weights * np.tanh(u) * np.tanh(v)).sum(), (weights * slope(u) * slope(v)).sum()


DUALS = {"relu": relu, "erf": erf, "tanh": tanh}


def kernels(steps, x, y, c_w, c_b):
    """NNGP and NTK of two inputs of shape ``(height, width, channels)``; numbers, if no positions are left."""
    (_, (k, theta, _), _) = run(steps, begin(x, y), c_w, c_b)
    return k, theta


def begin(x, y):
    """Kernels and means of (x, x), (x, y), (y, y) before the first step."""
    start = []
    for first, second in ((x, x), (x, y), (y, y)):
        k = np.einsum("abc,dec->abde", first, second) / x.shape[-1]
        means = first.mean(-1), second.mean(-1)
        start.append((k, np.zeros_like(k), means))
    return start


def run(steps, three, c_w, c_b):
    """Push (x, x), (x, y), (y, y) through the steps."""
    for name, *options in steps:
        if name == "conv":
            three = [convolved(pair, *options, c_w, c_b) for pair in three]
        elif name == "up":
            three = [transposed(pair, *options, c_w, c_b) for pair in three]
        elif name == "local":
            three = [alone(convolved(pair, *options, c_w, c_b)) for pair in three]
        elif name == "mix":
            three = [mixed(pair, options[0]) for pair in three]
        elif name == "attend":
            three = attended(three, *options, c_w, c_b)
        elif name == "beside":
            total = sum(share for share, _ in options)
            shares = [share / total for share, _ in options]
            branches = [run(branch, three, c_w, c_b) for _, branch in options]
            three = [beside(shares, [branch[i] for branch in branches]) for i in range(3)]
        elif name == "times":
            branches = [run(branch, three, c_w, c_b) for branch in options]
            three = [times([branch[i] for branch in branches]) for i in range(3)]
        elif name == "dense":
            three = [
                (c_b + c_w * k, 1 + c_w * k + c_w * theta, zeros(means))
                for k, theta, means in three
            ]
        elif name in DUALS:
            three = activated(three, DUALS[name], name)
        elif name == "pool":
            three = [pooled(pair, *options) for pair in three]
        elif name == "flatten":
            three = [(equal(k), equal(theta), average(means)) for k, theta, means in three]
        elif name == "mean":
            three = [(k.mean(), theta.mean(), average(means)) for k, theta, means in three]
        elif name == "norm":
            three = normalized(three)
        elif name == "drop":
            three = dropped(three, *options)
        elif name == "together":
            three = normalized_together(three, *options)
        elif name == "add":
            branches = [run(branch, three, c_w, c_b) for branch in options]
            three = [added([branch[i] for branch in branches]) for i in range(3)]
        else:
            raise ValueError(name)
    return three


def added(pairs):
    """Sum of branches."""
    k, theta, means = zip(*pairs, strict=True)
    return sum(k), sum(theta), tuple(sum(side) for side in zip(*means, strict=True))


def beside(shares, pairs):
    """Mean over the channels of branches."""
    k = sum(s * pair[0] for s, pair in zip(shares, pairs, strict=True))
    theta = sum(s * pair[1] for s, pair in zip(shares, pairs, strict=True))
    means = [sum(s * pair[2][i] for s, pair in zip(shares, pairs, strict=True)) for i in range(2)]
    return k, theta, tuple(means)


def times(pairs):
    """Product of branches, the derivative by the rule of products."""
    k = np.prod([pair[0] for pair in pairs], 0)
    theta = 0
    for i, pair in enumerate(pairs):
        others = [other[0] for j, other in enumerate(pairs) if j != i]
        theta = theta + pair[1] * np.prod(others, 0)
    return k, theta, tuple(np.prod([pair[2][i] for pair in pairs], 0) for i in range(2))


def alone(pair):
    """Nothing between different positions."""
    k, theta, means = pair
    kept = np.zeros((2, *k.shape))
    for i, j in np.ndindex(k.shape[:2]):
        kept[:, i, j, i, j] = k[i, j, i, j], theta[i, j, i, j]
    return kept[0], kept[1], means


def mixed(pair, rows):
    """Each output position is a weighted sum of all positions, counted row by row."""
    k, theta, means = pair
    height, width = k.shape[:2]
    at = [(i, j) for i in range(height) for j in range(width)]
    new = np.zeros((2, *k.shape))
    for p, q in np.ndindex(len(at), len(at)):
        for a, b in np.ndindex(len(at), len(at)):
            factor = rows[p][a] * rows[q][b]
            if not factor:
                continue
            new[0][at[p] + at[q]] += factor * k[at[a] + at[b]]
            new[1][at[p] + at[q]] += factor * theta[at[a] + at[b]]
    moved = []
    for mean in means:
        moved.append(np.zeros((height, width)))
        for p, a in np.ndindex(len(at), len(at)):
            moved[-1][at[p]] += rows[p][a] * mean[at[a]]
    return new[0], new[1], tuple(moved)


def attended(three, sharpness, tied, c_w, c_b):
    """Values and output are linear steps; the weights of each input are the softmax of its own covariance."""
    of_inputs = []
    for k in (three[0][0], three[2][0]):
        weights = np.zeros_like(k)
        for i, j in np.ndindex(k.shape[:2]):
            products = np.exp(sharpness * c_w * k[i, j] * tied)
            weights[i, j] = products / products.sum()
        of_inputs.append(weights)
    after = []
    for (k, theta, means), (i, j) in zip(three, ((0, 0), (0, 1), (1, 1)), strict=True):
        values = np.stack([c_b + c_w * k, 1 + c_w * k + c_w * theta])
        mixed = np.einsum("ijab,tabcd,klcd->tijkl", of_inputs[i], values, of_inputs[j])
        output_k = c_b + c_w * mixed[0]
        output_theta = 1 + c_w * mixed[0] + c_w * mixed[1]
        after.append((output_k, output_theta, zeros(means)))
    return after


def zeros(means):
    return tuple(np.zeros_like(m) for m in means)


def average(means):
    return tuple(np.mean(m) for m in means)


def equal(a):
    height, width = a.shape[:2]
    return np.mean([a[i, j, i, j] for i in range(height) for j in range(width)])


def geometry(n, size, stride, padding):
    """Number of outputs and first position read."""
    if padding == "none":
        return (n - size) // stride + 1, 0
    outputs = math.ceil(n / stride)
    return outputs, -(max((outputs - 1) * stride + size - n, 0) // 2)


def taps(n, size, stride, padding, out):
    """The positions that one output reads; None for a zero."""
    _, start = geometry(n, size, stride, padding)
    reads = [out * stride + start + t for t in range(size)]
    if padding == "circular":
        return [r % n for r in reads]
    return [r if 0 <= r < n else None for r in reads]


def convolved(pair, size, stride, padding, c_w, c_b):
    height, width = pair[0].shape[:2]
    rows, _ = geometry(height, size, stride, padding)
    columns, _ = geometry(width, size, stride, padding)
    down = [taps(height, size, stride, padding, i) for i in range(rows)]
    across = [taps(width, size, stride, padding, j) for j in range(columns)]
    return summed(pair, down, across, c_w, c_b)


def summed(pair, down, across, c_w, c_b):
    """A linear step: for each output and tap the position that is read, None for a zero, in both dimensions."""
    k, theta, _ = pair
    size = len(down[0])
    rows = len(down)
    columns = len(across)
    new = np.zeros((2, rows, columns, rows, columns))
    for i, j, m, n in np.ndindex(rows, columns, rows, columns):
        for s in range(size):
            for t in range(size):
                at = down[i][s], across[j][t], down[m][s], across[n][t]
                if None not in at:
                    new[:, i, j, m, n] += k[at], theta[at]
    new /= size**2
    blank = np.zeros((rows, columns))
    return c_b + c_w * new[0], 1 + c_w * new[0] + c_w * new[1], (blank, blank)


def writes(n, size, stride, padding):
    """For each output the input that each tap of a transposed window takes to it, by what each input writes."""
    same = size - 1 if stride > size - 1 else math.ceil((size + stride - 2) / 2)
    zeros_before = size - 1 if padding == "none" else same
    outputs = n * stride + (max(size - stride, 0) if padding == "none" else 0)
    table = [[None] * size for _ in range(outputs)]
    for q in range(n):
        for t in range(size):
            p = stride * q + zeros_before - t
            if padding == "circular":
                p %= outputs
            if 0 <= p < outputs:
                table[p][t] = q
    return table


def transposed(pair, size, stride, padding, c_w, c_b):
    height, width = pair[0].shape[:2]
    down = writes(height, size, stride, padding)
    across = writes(width, size, stride, padding)
    return summed(pair, down, across, c_w, c_b)


def pooled(pair, size, stride):
    k, theta, means = pair
    rows, _ = geometry(k.shape[0], size, stride, "none")
    columns, _ = geometry(k.shape[1], size, stride, "none")
    window = lambda i: slice(i * stride, i * stride + size)
    new = np.zeros((2, rows, columns, rows, columns))
    for i, j, m, n in np.ndindex(rows, columns, rows, columns):
        at = window(i), window(j), window(m), window(n)
        new[:, i, j, m, n] = k[at].mean(), theta[at].mean()
    small = tuple(
        np.array([[m[window(i), window(j)].mean() for j in range(columns)] for i in range(rows)])
        for m in means
    )
    return new[0], new[1], small


def diagonal(k):
    """Variances at each position."""
    if k.ndim == 0:
        return k
    return np.array([[k[i, j, i, j] for j in range(k.shape[1])] for i in range(k.shape[0])])


def sides(three):
    """Variances of the two inputs of each of the three pairs."""
    x, y = diagonal(three[0][0]), diagonal(three[2][0])
    return (x, x), (x, y), (y, y)


def activated(three, dual, name):
    after = []
    for (k, theta, _), (a, b) in zip(three, sides(three), strict=True):
        value = np.zeros_like(k)
        slope = np.zeros_like(k)
        for at in np.ndindex(k.shape):
            half = len(at) // 2
            value[at], slope[at] = dual(a[at[:half]], b[at[half:]], k[at])
        means = zeros((a, b))
        if name == "relu":
            means = tuple(np.sqrt(v / (2 * math.pi)) for v in (a, b))
        after.append((value, slope * theta, means))
    return after


def normalized(three):
    after = []
    for (k, theta, (m, n)), (a, b) in zip(three, sides(three), strict=True):
        s, t = np.sqrt(a - m**2), np.sqrt(b - n**2)
        outer = lambda u, v: np.multiply.outer(u, v)
        after.append(((k - outer(m, n)) / outer(s, t), theta / outer(s, t), zeros((m, n))))
    return after


def normalized_together(three, axes):
    """One mean and one variance for all channels of some positions, whose means differ."""
    after = []
    for (k, theta, both), variances in zip(three, sides(three), strict=True):
        roots = []
        rest = []
        for mean, variance in zip(both, variances, strict=True):
            common = mean.mean(axes, keepdims=True)
            spread = variance.mean(axes, keepdims=True) - common**2
            roots.append(np.sqrt(spread) * np.ones_like(mean))
            rest.append(mean - common)
        covariance = k - np.multiply.outer(*both) + np.multiply.outer(*rest)
        scale = np.multiply.outer(*roots)
        means = tuple(d / s for d, s in zip(rest, roots, strict=True))
        after.append((covariance / scale, theta / scale, means))
    return after


def dropped(three, rate):
    """Units of x and y are drawn apart. Units of x with x are the same, kept with probability 1 − rate."""
    after = []
    for pair, same in zip(three, (True, False, True), strict=True):
        k, theta, means = pair
        both = np.stack([k, theta])
        for p in np.ndindex(k.shape[: k.ndim // 2]):
            both[(slice(None), *p, *p)] /= (1 - rate) if same else 1
        after.append((both[0], both[1], means))
    return after
