"""Influence in a k-layer mean-aggregating graph network spreads like a lazy random walk of k steps.

It does so exactly in linear networks and nearly with ReLU. The influence of node y on node x is the sum of all
|∂h_x/∂h_y|, divided by the total of this sum over all nodes y. In linear networks the influence is the probability
P^k(x, y), for any weights. With ReLU it would be the same probability if the gates of a unit opened together at all
nodes. Gates differ where nodes differ, which changes the influence by a few per cent; a recursion at infinite width
gives the change.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.graphs import (
    influence,
    karate_club,
    lazy_walk,
    nearest_neighbours,
    random_regular,
    ring,
)
from steepest.kernels import graph_influence
from steepest.nn.data import digits
from steepest.nn.networks import graph_convolution

GRAPHS = ("karate", "regular", "ring")
NODES = 34  # of each, as many as the karate club has
LINEAR = 2  # linear networks on each graph
WIDTH_DEPTH = 2
"""Layers of the networks whose widths are compared: what is left at a finite width is of order layers over width."""
IMAGE_NETWORKS = 6
IMAGE_DEPTH = 4
"""Layers of the networks on digits."""
ROW = ["node", "other"]
BY_ROW = ("graph", "depth", "node", "other")
SMALL = 1e-6
"""Distance from the walk, relative, of a theory that is the walk: none can be measured in its direction."""


class Setting(NamedTuple):
    """Graphs, as matrices of walks, and features of their nodes."""

    adjacency: np.ndarray  # (graphs, 34, 34)
    walks: np.ndarray  # as the network has them, (graphs, 34, 34)
    features: np.ndarray  # (34, d)
    images: np.ndarray  # principal components of digits, (n, d)
    image_walk: np.ndarray  # on their nearest neighbours, (n, n)


@kit.claim
class InfluenceRandomWalk(kit.Claim[Setting]):
    """Random networks on a karate club, an expander, a ring, and the nearest neighbours of digits."""

    depths: tuple[Annotated[int, kit.Within(2, 8)], ...] = kit.param(
        (2, 3, 4),
        "numbers of layers k, increasing",
        unit="layers",
        scope=kit.choices(
            (2, 3, 4), (2, 4), (2, 3), why="deeper networks need to be wider, and more of them"
        ),
    )
    width: Annotated[int, kit.Within(2, 256)] = kit.param(
        64,
        "width of every layer",
        unit="neurons",
        scope=kit.between(56, 96, "narrower networks are off by layers over width"),
    )
    widths: tuple[Annotated[int, kit.Within(2, 512)], ...] = kit.param(
        (32, 128),
        "others, compared with it",
        unit="neurons",
        scope=kit.choices((32, 128), (24, 48, 128), why="at 16 the next order is seen"),
    )
    networks: kit.Seeds = kit.param(40, "random networks on each graph")
    dimension: Annotated[int, kit.Within(1, 64)] = kit.param(
        8,
        "dimension of the nodes' features",
        scope=kit.between(6, 12, "with fewer absolute values are no squares"),
    )
    images: Annotated[int, kit.Within(20, 400)] = kit.param(
        150, "digits", scope=kit.between(100, 200, "more take longer")
    )
    neighbours: Annotated[int, kit.Within(1, 15)] = kit.param(
        5, "nearest ones that a digit is joined to", scope=kit.between(4, 8)
    )
    rows: Annotated[int, kit.Within(2, 20)] = kit.param(5, "digits x whose influences are taken")
    aggregate: Literal["mean", "sum"] = kit.param(
        "mean",
        "what a node takes of its neighbours' states and its own: mean or sum",
        unit="word",
        scope=kit.choices("mean", why="of sums it is another walk"),
    )

    kind = "limit"
    says = {
        "spreads like a lazy random walk of k steps": "spread",
        "exactly in linear networks": "linear",
        "nearly with ReLU": ("relu", "distance"),
    }
    tiny = {
        "depths": (2,),
        "width": 20,
        "widths": (8, 32),
        "networks": 3,
        "dimension": 4,
        "images": 20,
        "neighbours": 3,
        "rows": 2,
    }
    full = {"networks": 200, "width": 128, "widths": (64, 256)}
    out_of_scope = {"aggregate": "sum"}

    @property
    def chosen(self) -> np.ndarray:
        """Return which digits x are."""
        return np.arange(self.rows) * (self.images // self.rows)

    @property
    def places(self) -> np.ndarray:
        """Return the places of the judged depths."""
        return np.array(self.depths) - 1

    def axes(self):
        return {
            "graph": GRAPHS,
            "depth": self.depths,
            "node": tuple(range(NODES)),
            "other": tuple(range(NODES)),
            "width": tuple(sorted({self.width, *self.widths})),
            "image": tuple(self.chosen.tolist()),
            "digit": tuple(range(self.images)),
        }

    def check_fields(self) -> None:
        if sorted(set(self.depths)) != list(self.depths) or self.depths[0] != WIDTH_DEPTH:
            raise kit.UserError(f"depths increase from 2, got {[*self.depths]}; try 2 3 4")
        if self.width in self.widths:
            raise kit.UserError(f"widths are others than width, got {self.width} twice; try 32 128")

    def setting(self, key):
        rng = kit.numpy_generator(key)
        adjacency = np.stack([karate_club(), random_regular(NODES, 4, rng), ring(NODES)])
        means = lazy_walk(adjacency)
        walks = means if self.aggregate == "mean" else adjacency + np.eye(NODES)
        every = np.asarray(digits().x)
        pixels = every[rng.choice(len(every), self.images, replace=False)]
        centred = pixels - pixels.mean(0)
        axes = np.linalg.svd(centred, full_matrices=False)[2][: self.dimension]
        components = centred @ axes.T
        return Setting(
            adjacency,
            walks,
            rng.standard_normal((NODES, self.dimension)),
            components / components.std(),
            lazy_walk(nearest_neighbours(pixels, self.neighbours)),
        )

    def hypotheses(self, setting):
        sums = setting.walks.sum(-1)
        deepest = max(self.depths)
        narrowest = min(self.widths)
        yield kit.assume(
            "largest sum of a row of P", sums.max(), "<", 1 + 1e-9, "use --aggregate mean"
        )
        yield kit.assume("layers over width", deepest / self.width, "<=", 0.1, "raise --width")
        yield kit.assume("layers over smallest other width", WIDTH_DEPTH / narrowest, "<=", 0.25)
        yield kit.assume(
            "largest k",
            deepest,
            "<=",
            6,
            "deeper the walk and its rivals merge, and one network's noise grows",
        )

    def predict(self, setting):
        P = lazy_walk(setting.adjacency)
        theory = self.in_the_limit(setting, P)
        walk = self.steps(P)
        images = graph_influence(setting.image_walk, setting.images, IMAGE_DEPTH, self.chosen)[-1]
        return kit.law(
            walk=("graph depth node other", walk),
            theory=("graph depth node other", theory),
            spread=("graph depth", _spread(theory)),
            noise=("width", np.array(self.axes()["width"], float) ** -0.5),
            images=("image digit", images),
        )

    def in_the_limit(self, setting: Setting, P: np.ndarray, gates: Any = None) -> np.ndarray:
        """Return theory's influences on every graph at the judged depths, ``(graphs, depths, n, n)``."""
        deepest = max(self.depths)
        every = [graph_influence(walk, setting.features, deepest, gates=gates) for walk in P]
        return np.stack(every)[:, self.places]

    def steps(self, P: np.ndarray, more: int = 0) -> np.ndarray:
        """Return what k steps of a walk give at the judged depths, ``(graphs, depths, n, n)``."""
        return np.stack([_powers(walk, max(self.depths) + more)[self.places + more] for walk in P])

    def observe(self, setting, key):
        count = len(GRAPHS)
        walks = np.concatenate(
            [np.repeat(setting.walks, number, axis=0) for number in (self.networks, LINEAR)]
        )
        slopes = np.repeat([0.0, 1.0], [count * self.networks, count * LINEAR])
        lanes = np.arange(len(slopes))
        run = self.influences(self.width, max(self.depths), self.places)
        moved = np.asarray(run(key, lanes, walks, slopes, setting.features))
        relu, linear = np.split(moved, [count * self.networks])
        relu = relu.reshape(count, self.networks, *relu.shape[1:])
        linear = linear.reshape(count, LINEAR, *linear.shape[1:])
        # other weights for other networks
        by_width = {self.width: relu[0, :, 0]}  # WIDTH_DEPTH is the first depth
        networks = np.arange(self.networks)
        club = np.repeat(setting.walks[:1], self.networks, axis=0)
        for place, width in enumerate(self.widths):
            numbers = len(lanes) + place * self.networks + networks
            run = self.influences(width, WIDTH_DEPTH, [WIDTH_DEPTH - 1])
            moved = run(key, numbers, club, 0.0 * networks, setting.features)
            by_width[width] = np.asarray(moved)[:, -1]
        numbers = -1 - np.arange(min(self.networks, IMAGE_NETWORKS))
        image_walks = np.repeat(setting.image_walk[None], len(numbers), axis=0)
        run = self.influences(self.width, IMAGE_DEPTH, [IMAGE_DEPTH - 1], self.chosen)
        images = run(key, numbers, image_walks, 0.0 * numbers, setting.images)
        return kit.seen(
            relu=("graph network depth node other", relu),
            linear=("graph linear_network depth node other", linear),
            by_width=("width network node other", [by_width[width] for width in sorted(by_width)]),
            images=("image_network image digit", np.asarray(images)[:, -1]),
        )

    def influences(
        self,
        width: int,
        depth: int,
        layers: np.ndarray | list[int],
        nodes: np.ndarray | None = None,
    ) -> Callable[..., jax.Array]:
        """Return a compiled function of a key, numbers of networks, walks, slopes below zero and features.

        It gives the influences in some layers, on some nodes or on all: ``(networks, layers, nodes, n)``.
        """

        def run(
            key: jax.Array, numbers: jax.Array, walks: jax.Array, slopes: jax.Array, x: jax.Array
        ) -> jax.Array:
            def one(lane: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
                number, walk, slope = lane
                leaky = lambda z: jnp.where(z > 0, z, slope * z)
                net = graph_convolution(walk, self.dimension, width, depth, leaky)
                params = net.init(jax.random.fold_in(key, number))
                moved = influence(net, params, x, nodes=nodes, layers=layers)
                return moved / moved.sum(-1, keepdims=True)

            return jax.lax.map(one, (numbers, walks, slopes))

        return kit.compiled(run)

    def derive(self, law, seen):
        """Return how far networks are from theory and from the walk, and how much their nodes differ."""
        direction = law.theory - law.walk
        size = np.sqrt((law.walk**2).sum(ROW))
        length = np.maximum(np.sqrt((direction**2).sum(ROW)), SMALL * size)
        away = xarray.apply_ufunc(
            _square,
            seen.relu,
            law.theory,
            input_core_dims=[["network", *ROW], ROW],
            output_core_dims=[["network"]],
        )
        of_images = xarray.apply_ufunc(
            _square,
            seen.images,
            law.images,
            input_core_dims=[["image_network", "image", "digit"], ["image", "digit"]],
            output_core_dims=[["image_network"]],
        )
        single = law.theory.sel(graph="karate", depth=WIDTH_DEPTH, drop=True)
        return {
            "linear_off": abs(seen.linear - law.walk).sum("other") / 2,
            "away": away / length**2,
            # of each network along theory's own direction
            "distance": ((seen.relu - law.walk) * direction).sum(ROW) / length / size,
            "law_of_distance": length / size,
            "spread": xarray.apply_ufunc(_spread, seen.relu, input_core_dims=[ROW]),
            "noise": abs(seen.by_width - single).sum("other").mean("node") / 2,
            "images_off": of_images / (law.images**2).sum(),
        }

    def judge(self, law, seen):
        yield kit.agrees(
            "linear",
            seen.linear_off,
            1e-12,
            label="linear networks: distance of influence and walk",
        )
        yield kit.follows(
            "relu",
            0.0,
            seen.away,
            0.5,  # of the walk it is 1; the interval of 40 networks is up to 0.35, on the expander
            over="graph depth",
            absolute=True,
            label="ReLU: squared distance of mean influence and theory / of theory and walk",
        )
        yield kit.follows(
            "distance",
            seen.law_of_distance,
            seen.distance,
            0.35,  # layers over width is up to 0.07, and the interval 0.15 to 0.25
            label="ReLU: distance from the walk in theory's direction, relative",
        )
        yield kit.follows(
            "spread",
            law.spread,
            seen.spread,
            0.05,  # one network's noise adds 0.01, and the interval is 0.015
            label="how much nodes differ in what moves them",
        )
        yield kit.power(
            "width_exponent",
            law.noise,
            seen.noise,
            0.2,  # at width 32 what is of order 1/width adds 0.04; the interval takes another 0.1
            over="width",
            label="karate club: one network's distance from theory against width",
        )
        yield kit.follows(
            "digits",
            0.0,
            seen.images_off,
            0.005,  # the interval of eight networks is 0.002
            absolute=True,
            label="digits: squared distance of mean influence and theory, relative",
        )

    def rivals_of_walks(self, setting):
        """Return other walks, for linear networks and ReLU ones."""
        loops = setting.adjacency
        stays = loops + np.eye(NODES)
        degrees = stays.sum(-1)
        symmetric = stays / np.sqrt(degrees[:, :, None] * degrees[:, None, :])
        image_edges = (setting.image_walk > 0) & ~np.eye(self.images, dtype=bool)
        image_moving = _powers(image_edges / image_edges.sum(-1, keepdims=True), IMAGE_DEPTH)
        image_degrees = (setting.image_walk > 0).sum(-1)

        def by(powers: np.ndarray) -> dict[str, Any]:
            """Return the laws of another walk."""
            limit = (BY_ROW, np.broadcast_to(powers, (len(GRAPHS), len(self.depths), NODES, NODES)))
            # no ratio to zero, where all nodes are alike
            spread = np.maximum(_spread(limit[1]), 1e-12)
            return {"walk": limit, "theory": limit, "spread": (BY_ROW[:2], spread)}

        yield kit.rival(
            "the walk that never stays",
            "a walk that takes an edge in every step",
            **by(self.steps(loops / loops.sum(-1, keepdims=True))),
            images=(("image", "digit"), image_moving[-1, self.chosen]),
        )
        yield kit.rival(
            "symmetric normalization",
            "it is the same on regular graphs",
            **by(self.steps(symmetric)),
        )
        yield kit.rival(
            "k + 1 steps", "the readout is a step too", **by(self.steps(lazy_walk(loops), 1))
        )
        yield kit.rival(
            "a node's influence depends only on its degree",
            "where the walk ends",
            **by((degrees / degrees.sum(-1, keepdims=True))[:, None, None]),
            images=(("digit",), image_degrees / image_degrees.sum()),
        )

    def rivals(self, setting, law):
        half = lambda nodes: np.full((nodes, nodes), 0.25) + np.eye(nodes) / 4
        apart = self.in_the_limit(setting, lazy_walk(setting.adjacency), half(NODES))
        images_apart = graph_influence(
            setting.image_walk, setting.images, IMAGE_DEPTH, self.chosen, half(self.images)
        )[-1]
        yield kit.rival(
            "ReLU networks follow the walk exactly",
            "the gates of a unit open together at all nodes",
            id="walk",
            theory=law.walk,
        )
        yield kit.rival(
            "the gates of a unit open independently at the nodes",
            "then every path is open with one probability",
            id="independent_gates",
            theory=(BY_ROW, apart),
            spread=(BY_ROW[:2], _spread(apart)),
            images=(("image", "digit"), images_apart),
        )
        yield from self.rivals_of_walks(setting)
        yield kit.rival(
            "one network's noise falls like 1/width",
            "that is how squares fall, and the bias of the mean",
            noise=law.noise**2,
        )

    def controls(self, seen):
        linear = seen.linear.isel(linear_network=0, drop=True)
        relu = seen.relu.isel(network=slice(LINEAR)).rename(network="linear_network")
        yield kit.control(
            "linear networks in place of ReLU networks", "no gate ever closes", relu=linear
        )
        yield kit.control(
            "networks of ReLU for linear ones", "gates part where nodes differ", linear=relu
        )
        yield kit.control(
            "networks on another graph each",
            "every graph has its own walk",
            relu=seen.relu.roll(graph=1),
            images=seen.images.roll(image=1),
        )
        yield kit.control(
            "the widest networks for the narrowest",
            "narrow networks are noisy",
            by_width=(seen.by_width.dims, seen.by_width.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        first = {"graph": "karate", "depth": self.depths[-1], "node": 0}
        walk = law.walk.sel(first).values
        order = np.argsort(-walk, kind="stable")
        place = np.arange(1, NODES + 1)
        yield kit.panel(
            f"Karate club: who moves member 1 in {self.depths[-1]} layers",
            "members, in the walk's order",
            "influence",
            kit.observed_curve(
                place, seen.relu.sel(first).values[:, order], "ReLU networks", kind="points"
            ),
            kit.predicted_curve(place, law.theory.sel(first).values[order], "theory"),
            kit.rival_curve(place, walk[order], "walk"),
        )
        yield kit.curves(
            "How far ReLU networks are from the walk",
            seen.law_of_distance,
            seen.distance,
            over="depth",
            by="graph",
            x="layers",
            y="distance, relative",
        )
        yield kit.curves(
            "Nodes become alike, on an expander soon",
            law.spread,
            seen.spread,
            over="depth",
            by="graph",
            x="layers",
            y="nodes' differences",
            log="y",
        )
        yield kit.curves(
            "One network's noise",
            law.noise * float((seen.noise.mean("network") / law.noise).mean()),
            seen.noise,
            over="width",
            y="distance from theory",
            log="xy",
        )


def _powers(P: np.ndarray, depth: int) -> np.ndarray:
    """Return P, …, P^k with rows that sum to one, ``(k, n, n)``."""
    powers = [P]
    for _ in range(depth - 1):
        powers.append(powers[-1] @ P)
    stacked = np.stack(powers)
    return stacked / stacked.sum(-1, keepdims=True)


def _square(samples: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Estimate the squared distance of the mean of samples ``(..., m, n, n)`` from ``(..., n, n)`` without bias.

    It is the mean of products ⟨a − c, b − c⟩ over pairs of different samples, here as its m jackknife pseudo-values.
    """
    away = (samples - centre[..., None, :, :]).reshape(*samples.shape[:-2], -1)
    m = away.shape[-2]
    products = away @ np.swapaxes(away, -1, -2) * (1 - np.eye(m))
    whole = products.sum((-1, -2))[..., None]
    without = (whole - 2 * products.sum(-1)) / ((m - 1) * (m - 2))
    return whole / (m - 1) - (m - 1) * without


def _spread(rows: np.ndarray) -> np.ndarray:
    """Return how much nodes differ in what moves them: total variation of rows from their mean, ``(...)``."""
    return np.abs(rows - rows.mean(-2, keepdims=True)).sum(-1).mean(-1) / 2
