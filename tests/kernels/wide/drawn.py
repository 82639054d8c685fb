"""Architectures drawn by a seed, as steps of ``long_double`` and as layers of the library; inputs that are hard."""

from typing import NamedTuple

import numpy as np

from steepest.nn.layers import (
    add,
    aggregate,
    attention,
    concatenate,
    conv,
    dense,
    flatten,
    global_pool,
    identity,
    layer_norm,
    multiply,
    network,
    pool,
    serial,
)

KINKED = ("relu", "leaky_relu(0.2)", "abs")
SMOOTH = (
    "erf",
    "tanh",
    "gelu",
    "sin",
    "polynomial(0,0.8,0.1)",
    "polynomial(0.2,0.6,0,0.02)",
    "linear",
)
WIDTH = 4


class Drawn(NamedTuple):
    """An architecture, its inputs, which of their positions exist, and the tolerance to ask for."""

    steps: list
    bias: bool
    x: np.ndarray
    mask: np.ndarray | None
    tolerance: float | None

    @property
    def limit(self):
        """The limit of the library's network."""
        net = network(
            *map(layer_of, self.steps),
            shape=self.x.shape[1:],
            parameterized="ntk",
            bias=self.bias,
        )
        return net.limit()


class Draw:
    """Adds steps one after the other; knows the space behind them and what kind of channels there are."""

    def __init__(self, seed, dtype):
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype
        images = self.rng.random() < 0.6
        self.space = (4, 3) if images else (int(self.rng.integers(6, 10)),)
        self.start = self.space
        self.normalized = self.rng.random() < 0.3
        self.bias = self.normalized or self.rng.random() < 0.6
        self.smooth = self.rng.random() < 0.4
        first = SMOOTH if self.smooth else KINKED
        self.names = [str(self.rng.choice(first)), str(self.rng.choice(SMOOTH))]
        self.steps = []

    def c_w(self):
        return float(np.round(self.rng.uniform(0.8, 1.6), 3))

    def c_b(self):
        biased = self.normalized or self.rng.random() < 0.5
        return float(np.round(self.rng.uniform(0.05, 0.3), 3)) if biased else 0.0

    def linear(self):
        """A dense layer, or a convolution that leaves the space as it is."""
        if self.rng.random() < 0.4:
            return ("dense", self.c_w(), self.c_b())
        padding = str(self.rng.choice(["zero", "circular"]))
        return ("conv", int(self.rng.integers(1, 4)), 1, padding, self.c_w(), self.c_b())

    def activation(self):
        return ("act", str(self.rng.choice(self.names)))

    def put(self, *steps):
        self.steps += steps

    def activated(self):
        self.put(self.linear(), self.activation())

    def strided(self):
        """A convolution that leaves fewer positions."""
        size, stride = int(self.rng.integers(2, 4)), int(self.rng.integers(1, 3))
        padding = str(self.rng.choice(["zero", "circular", "none"]))
        if padding == "none":
            after = tuple((n - size) // stride + 1 for n in self.space)
        else:
            after = tuple(-(-n // stride) for n in self.space)
        if min(after) < 2:
            self.activated()
            return
        self.space = after
        self.put(("conv", size, stride, padding, self.c_w(), self.c_b()), self.activation())

    def pooled(self):
        if min(self.space) < 3:
            self.activated()
            return
        size = 2
        stride = int(self.rng.integers(1, 3))
        self.space = tuple((n - size) // stride + 1 for n in self.space)
        self.put(("pool", size, stride))

    def norm(self):
        self.put(self.linear(), ("norm",), self.activation())

    def residual(self):
        weight = float(np.round(self.rng.uniform(0.3, 1.0), 3))
        branch = [self.linear(), self.activation(), self.linear()]
        self.put(self.linear(), ("add", (weight, branch), (1.0, [])), self.activation())

    def beside(self):
        branches = [(width, [self.linear(), self.activation()]) for width in (3, 5)]
        self.put(("beside", *branches))

    def gate(self):
        self.put(("times", [self.linear(), self.activation()], [self.linear(), ("act", "erf")]))

    def mixed(self):
        positions = int(np.prod(self.space))
        outputs = positions if self.rng.random() < 0.6 else max(2, positions // 2)
        rows = self.rng.normal(size=(outputs, positions)) / positions**0.5
        rows[self.rng.random(rows.shape) < 0.4] = 0
        rows[:, 0] = 0.5
        if outputs != positions:
            self.space = (outputs,)
        self.put(("mix", tuple(map(tuple, rows.tolist()))))

    def attended(self):
        sharpness = float(np.round(self.rng.uniform(0.2, 1.0), 3))
        tied = bool(self.rng.random() < 0.7)
        self.put(("attend", sharpness, tied, self.c_w(), self.c_b()), self.activation())

    def architecture(self):
        self.put(self.linear(), self.activation())
        blocks = [self.activated, self.strided, self.pooled, self.mixed, self.attended]
        blocks += [self.norm] if self.normalized else []
        # branches once in a network, as each doubles what is compiled
        branched = [self.residual, self.beside, self.gate]
        chosen = [blocks[self.rng.integers(len(blocks))] for _ in range(self.rng.integers(2, 4))]
        place = self.rng.integers(len(chosen) + 1)
        chosen.insert(place, branched[self.rng.integers(len(branched))])
        for block in chosen:
            block()
        self.put(("flatten",) if self.rng.random() < 0.5 else ("mean",))
        if self.rng.random() < 0.3:
            self.put(("dense", self.c_w(), self.c_b()), self.activation())
        self.put(("dense", self.c_w(), self.c_b()))
        return self.steps

    def inputs(self):
        """Rows: any, zero, equal, opposite, nearly parallel, with empty positions."""
        shape = (*self.start, int(self.rng.integers(1, 4)))
        x = 0.7 * self.rng.normal(size=(6, *shape))
        x[1] = 0
        x[2] = x[0]
        x[3] = -x[0]
        x[4] = x[0] + 10.0 ** -self.rng.integers(3, 12) * x[4]
        x[5][self.rng.random(self.start) < 0.5] = 0
        return x.astype(self.dtype)

    def mask(self):
        if self.rng.random() < 0.6:
            return None
        mask = self.rng.random((6, *self.start)) < 0.8
        mask[0] = mask[2] = mask[3] = mask[4]
        return mask

    def tolerance(self):
        """Coarse ones for some smooth networks: what series leave is then far above rounding."""
        coarse = self.smooth and self.rng.random() < 0.5
        return float(10 ** -self.rng.uniform(2, 6)) if coarse else None


def draw(seed, dtype):
    """Draw an architecture and inputs for it."""
    drawn = Draw(seed, dtype)
    steps = drawn.architecture()
    return Drawn(steps, drawn.bias, drawn.inputs(), drawn.mask(), drawn.tolerance())


def layer_of(step, width=WIDTH):
    """The library's layer of a step."""
    name, *options = step
    if name == "dense":
        return dense(width, c_w=options[0], c_b=options[1])
    if name == "conv":
        size, stride, padding, c_w, c_b = options
        return conv(width, size, stride=stride, padding=padding, c_w=c_w, c_b=c_b)
    if name == "attend":
        sharpness, tied, c_w, c_b = options
        scores = {"tied": tied, "sharpness": sharpness}
        return attention(width, heads=2, key=3, c_w=c_w, c_b=c_b, **scores)
    if name == "add":
        return add(*(chain(steps) for _, steps in options), weights=[r for r, _ in options])
    if name == "beside":
        return concatenate(*(chain(steps, width) for width, steps in options))
    if name == "times":
        return multiply(*map(chain, options))
    if name == "act":
        return options[0]
    return PLAIN[name](*options)


PLAIN = {
    "pool": pool,
    "norm": layer_norm,
    "mix": aggregate,
    "mean": global_pool,
    "flatten": flatten,
}


def chain(steps, width=WIDTH):
    """Layers one after the other; no steps pass on what they read."""
    return serial(*(layer_of(step, width) for step in steps)) if steps else identity
