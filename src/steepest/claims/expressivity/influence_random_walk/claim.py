"""Influence spreads over k layers of a mean-aggregating network like a lazy walk: exactly if linear, nearly with ReLU.

The influence of node y on node x is the sum of all |∂h_x/∂h_y|, over its sum over y. In linear networks it is the
probability P^k(x, y), whatever the weights. With ReLU it would be, did the gates of a unit open together at all nodes.
They part where nodes differ, which moves it by a few per cent; a recursion at infinite width says how much.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Prediction,
    Rival,
    Seeds,
    Within,
    agreement,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.core.arrays import Quantities
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
IMAGE_NETWORKS = 8
DEPTH = 4
"""Layers where graphs are compared, and of the networks on digits."""


class Setting(NamedTuple):
    """Graphs, as matrices of walks, and features of their nodes."""

    adjacency: np.ndarray  # (graphs, 34, 34)
    walks: np.ndarray  # as the network has them, (graphs, 34, 34)
    features: np.ndarray  # (34, d)
    images: np.ndarray  # principal components of digits, (n, d)
    image_walk: np.ndarray  # on their nearest neighbours, (n, n)


@dataclass(frozen=True)
class InfluenceRandomWalk(Claim):
    """Random networks on a karate club, an expander, a ring, and the nearest neighbours of digits."""

    depths: tuple[Annotated[int, Within(2, 8)], ...] = (2, 4, 6)  # numbers of layers k [1]
    deep: Annotated[int, Within(6, 24)] = (
        6  # layers of the networks in which rates are measured [1]
    )
    width: Annotated[int, Within(2, 256)] = 32  # of every layer [neurons]
    widths: tuple[Annotated[int, Within(2, 512)], ...] = (
        16,
        128,
    )  # others, compared with it [neurons]
    networks: Seeds = 20  # random networks on each graph [1]
    dimension: Annotated[int, Within(1, 64)] = 8  # of the nodes' features [1]
    images: Annotated[int, Within(20, 400)] = 200  # digits [1]
    neighbours: Annotated[int, Within(1, 15)] = 5  # nearest ones that a digit is joined to [1]
    rows: Annotated[int, Within(2, 20)] = 8  # digits x whose influences are taken [1]
    # what a node takes of its neighbours' states and its own: mean or sum [word]
    aggregate: Literal["mean", "sum"] = "mean"

    kind = "limit"
    statement = (
        r"\frac{\sum|\partial h_x/\partial h_y|}{\sum_z\sum|\partial h_x/\partial h_z|}=(P^k)_{xy}\quad "
        r"(\sigma=\mathrm{id}),\qquad \propto\sqrt{T^{(k)}_y(x,x)},\quad "
        r"T^{(l+1)}_y=2P\,(T^{(l)}_y\circ\Theta^{(l)})P^{\top}\quad (\mathrm{ReLU}),\qquad P=\tilde D^{-1}(A+I)"
    )
    source = "Jegelka's talk of 29 January in the notes [@vodrahalli2019]; [@xu2018], theorem 1"
    corrections = (
        "Independent gates give the walk for the mean derivative. For Σ|∂h_x/∂h_y| it is exact only where the gates "
        "of a unit are equal at all nodes. ReLU networks are 1.5 to 3 % off on these graphs (total variation), and the "
        "data reject the walk; independent gates are further off, 2.8 % on the karate club at k = 2, where ReLU is at "
        "1.6 %.",
    )
    remarks = (
        "In a linear network ∂h_x/∂h_y is P^k(x, y) times a matrix that all nodes share, so that the identity holds "
        "for all weights. Two such networks on each graph show it to rounding.",
        "For ReLU the recursion of T at infinite width is ours; tests compare it with wide networks. It is exact for "
        "sums of squares; for absolute values up to the spread over input features, less than 10⁻⁴ at eight. Θ is "
        "the probability that the gates of two nodes are open together, one half where they are alike: the walk is "
        "the case of equal gates. Xu et al. assume that every path is open with one probability.",
        "Networks average over many weights: the squared distance of their mean from theory is estimated without bias, "
        "from products of different networks, with the jackknife's interval. At a finite width the mean is off by the "
        "order of layers over width too.",
        "Nodes become alike like |λ₂(P)|^k, with ReLU too: theory's rate tends to log|λ₂|, which a test computes. What "
        "is judged is its value at these few layers, where other eigenvalues still count. The limit is not quite the "
        "stationary law of the walk: at infinite width in that test it is 2 % off on the expander and 4 % on the "
        "karate club. The rate does not tell theory from the walk (−0.155 and −0.163 at six layers), nor does the "
        "ratio of expander and ring (0.427 and 0.429): they refute other rivals.",
        "Neighbours among the digits are alike, so that gates are: theory is within 3 % of the walk there (root mean "
        "square), and these few networks do not tell the two apart. A digit is joined to its five nearest ones and to "
        "those that count it among theirs.",
        "Margins were set after seeds 0 to 4: that of the width's exponent went from 0.15 to 0.2, as the networks of "
        "width 16 add 0.04, and those of the two distances from 0.15 and 0.2 to 0.2 and 0.3, as 20 networks need.",
    )
    headline = ("linear", "relu", "near_walk")
    full = {"networks": 100, "deep": 24}
    tiny = {
        "depths": (2,),
        "deep": 6,
        "width": 16,
        "widths": (4, 32),
        "networks": 3,
        "dimension": 4,
        "images": 20,
        "neighbours": 3,
        "rows": 2,
    }
    out_of_scope = {"aggregate": "sum"}

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
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

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        sums = setting.walks.sum(-1)
        return [
            assume("largest sum of a row of P", sums.max(), "<", 1 + 1e-9, "use --aggregate mean"),
            assume("width", self.width, ">=", 16, "theory is for wide networks"),
            assume(
                "smallest other width", min(self.widths), ">=", 4, "theory is for wide networks"
            ),
            assume(
                "largest k",
                max(self.depths),
                "<=",
                6,
                "deeper the walk and its rivals merge, and one network's noise grows",
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        mean = lazy_walk(setting.adjacency)
        theory = np.stack([graph_influence(P, setting.features, self.deep) for P in mean])
        walk = np.stack([_powers(P, self.deep) for P in mean])
        rows = self.chosen
        images = graph_influence(setting.image_walk, setting.images, DEPTH, rows)[-1]
        return Prediction(
            walk=("graph depth node other", walk),
            theory=("graph depth node other", theory),
            # direction in which theory leaves the walk, and how far along it influence is
            direction=("graph depth node other", theory - walk),
            deviation=1.0,
            expander=_ratio(theory),
            rate=_rate(theory[0], self.late),
            width_exponent=-0.5,
            images=("image other", images),
            image_walk=("image other", _powers(setting.image_walk, DEPTH)[-1, rows]),
        )

    @property
    def chosen(self) -> np.ndarray:
        """Return which digits x are."""
        return np.arange(self.rows) * (self.images // self.rows)

    @property
    def late(self) -> np.ndarray:
        """Return the numbers of layers over which rates are fitted."""
        return np.arange(self.deep // 2, self.deep + 1)

    @property
    def shown(self) -> np.ndarray:
        """Return the places of the judged depths."""
        return np.array(self.depths) - 1

    def observe(self, setting: Setting, key: Key) -> Observation:
        count = len(GRAPHS)
        walks = np.concatenate(
            [np.repeat(setting.walks, number, axis=0) for number in (self.networks, LINEAR)]
        )
        slopes = np.repeat([0.0, 1.0], [count * self.networks, count * LINEAR])
        lanes = np.arange(len(slopes))
        moved = self.influences(self.width, self.deep)(key, lanes, walks, slopes, setting.features)
        relu, linear = np.split(np.asarray(moved), [count * self.networks])
        relu = relu.reshape(count, self.networks, *relu.shape[1:])
        linear = linear.reshape(count, LINEAR, *linear.shape[1:])
        # other weights for other networks
        one = {self.width: relu[0, :, WIDTH_DEPTH - 1]}
        networks = np.arange(self.networks)
        for place, width in enumerate(self.widths):
            numbers = len(lanes) + place * self.networks + networks
            club = np.repeat(setting.walks[:1], self.networks, axis=0)
            run = self.influences(width, WIDTH_DEPTH)
            moved = run(key, numbers, club, 0.0 * networks, setting.features)
            one[width] = np.asarray(moved)[:, -1]
        numbers = -1 - np.arange(min(self.networks, IMAGE_NETWORKS))
        image_walks = np.repeat(setting.image_walk[None], len(numbers), axis=0)
        run = self.influences(self.width, DEPTH, self.chosen)
        images = run(key, numbers, image_walks, 0.0 * numbers, setting.images)
        order = sorted(one)
        return Observation(
            relu=("graph network depth node other", relu),
            linear=("graph linear_network depth node other", linear),
            widths=("width", order),
            by_width=("width network node other", [one[width] for width in order]),
            images=("image_network image other", np.asarray(images)[:, -1]),
        )

    def influences(
        self, width: int, depth: int, nodes: np.ndarray | None = None
    ) -> Callable[..., jax.Array]:
        """Return a compiled function of a key, numbers of networks, walks, slopes below zero and features.

        It gives the influences in each layer, or in the last one on some nodes: ``(networks, k, nodes, n)``.
        """
        layers = None if nodes is None else [depth - 1]

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

        return compiled(run)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        relu = observed["relu"][:, :, self.shown]
        walk = predicted["walk"][:, self.shown]
        theory = predicted["theory"][:, self.shown]
        linear = observed["linear"] - predicted["walk"][:, None]
        direction = predicted["direction"][:, self.shown]
        # along theory's own direction, of every network: (networks,)
        along = np.einsum("gnkxy,gkxy->n", relu - walk[:, None], direction) / (direction**2).sum()
        single = np.array(
            [
                _distance(moved, predicted["theory"][0, WIDTH_DEPTH - 1])
                for moved in observed["by_width"]
            ]
        )
        slopes = _rate(observed["relu"][0], self.late)
        return [
            agreement(
                "linear",
                np.abs(linear).sum(-1).max() / 2,
                1e-12,
                label="linear networks: distance of influence and walk, at most",
            ),
            equal(
                "relu",
                0.0,
                _square(relu, theory) / _norm(direction),
                # the interval of 20 networks is 0.15
                0.3,
                absolute=True,
                label="ReLU: squared distance of mean influence and theory / of theory and walk",
            ),
            equal(
                "deviation",
                float(predicted["deviation"]),
                along,
                # layers over width is 0.1 to 0.2, and the interval 0.07
                0.2,
                absolute=True,
                label="ReLU: part of theory's distance from the walk that is measured",
            ),
            bound(
                "near_walk",
                _square(relu, walk) / _norm(walk),
                at_most=0.01,
                label="ReLU: squared distance of mean influence and walk, relative",
            ),
            exponent(
                "width_exponent",
                float(predicted["width_exponent"]),
                observed["widths"],
                single.T,
                # at width 16 what is of order 1/width is not small, which adds 0.04; the interval takes another 0.1
                0.2,
                label="karate club: one network's distance from theory against width",
            ),
            equal(
                "expander",
                float(predicted["expander"]),
                _ratio(observed["relu"]),
                0.02,
                label=f"nodes' differences at {DEPTH} layers, expander over ring",
            ),
            equal(
                "rate",
                float(predicted["rate"]),
                slopes,
                0.15,
                label="karate club: log of nodes' differences, per layer, near the walk's too",
            ),
            bound(
                "digits",
                _square(observed["images"][None], predicted["images"][None])
                / _norm(predicted["images"]),
                at_most=0.005,  # the interval of eight networks is 0.002
                label="digits: squared distance of mean influence and theory, relative",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        loops = setting.adjacency
        moving = loops / loops.sum(-1, keepdims=True)
        stays = loops + np.eye(NODES)
        degrees = stays.sum(-1)
        symmetric = stays / np.sqrt(degrees[:, :, None] * degrees[:, None, :])
        image_edges = (setting.image_walk > 0) & ~np.eye(self.images, dtype=bool)
        image_moving = image_edges / image_edges.sum(-1, keepdims=True)

        def by(walks: np.ndarray, image_walk: np.ndarray) -> Quantities:
            powers = np.stack([_powers(P, self.deep) for P in walks])
            images = _powers(image_walk, DEPTH)[-1, self.chosen]
            return predicted.replace(
                walk=("graph depth node other", powers),
                theory=("graph depth node other", powers),
                deviation=_along(powers - predicted["walk"], predicted["direction"], self.shown),
                expander=_ratio(powers),
                rate=_rate(powers[0], self.late),
                images=("image other", images),
            )

        later = np.stack([_powers(P, self.deep + 1)[1:] for P in lazy_walk(loops)])
        stationary = degrees / degrees.sum(-1, keepdims=True)
        everywhere = np.broadcast_to(stationary[:, None, None], predicted["walk"].shape)
        image_degrees = (setting.image_walk > 0).sum(-1)
        image_law = np.tile(image_degrees / image_degrees.sum(), (self.rows, 1))
        gates = np.full((NODES, NODES), 0.25) + np.eye(NODES) / 4
        apart = np.stack(
            [graph_influence(P, setting.features, self.deep, gates=gates) for P in lazy_walk(loops)]
        )
        gates = np.full((self.images, self.images), 0.25) + np.eye(self.images) / 4
        images_apart = graph_influence(
            setting.image_walk, setting.images, DEPTH, self.chosen, gates
        )[-1]
        return [
            Rival(
                "walk",
                predicted.replace(
                    theory=("graph depth node other", predicted["walk"]),
                    deviation=0.0,
                ),
                "the gates of a unit open together at all nodes",
                label="ReLU networks follow the walk exactly",
            ),
            Rival(
                "independent_gates",
                predicted.replace(
                    theory=("graph depth node other", apart),
                    deviation=_along(apart - predicted["walk"], predicted["direction"], self.shown),
                    expander=_ratio(apart),
                    rate=_rate(apart[0], self.late),
                    images=("image other", images_apart),
                ),
                "then every path is open with one probability",
                label="the gates of a unit open independently at the nodes",
            ),
            Rival(
                "no_loops",
                by(moving, image_moving),
                "a walk that takes an edge in every step",
                label="the walk that never stays",
            ),
            Rival(
                "symmetric",
                by(symmetric, setting.image_walk).replace(
                    images=("image other", predicted["images"]), rate=predicted["rate"]
                ),
                "it is the same on regular graphs",
                label="symmetric normalization",
            ),
            Rival(
                "later",
                predicted.replace(walk=("graph depth node other", later)),
                "the readout is a step too",
                label="k + 1 steps",
            ),
            Rival(
                "stationary",
                predicted.replace(
                    walk=("graph depth node other", everywhere),
                    theory=("graph depth node other", everywhere),
                    images=("image other", image_law),
                    expander=1.0,
                ),
                "where the walk ends",
                label="every node is moved by degree alone",
            ),
            Rival(
                "square_rate",
                predicted.replace(rate=2 * predicted["rate"], width_exponent=-1.0),
                "that is how squares fall, and the bias of the mean",
                label="differences fall like |λ₂|^2k, noise like 1/width",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        order = np.argsort(-predicted["walk"][0, DEPTH - 1, 0], kind="stable")
        place = np.arange(1, NODES + 1)
        moved = observed["relu"][0, :, DEPTH - 1, 0][:, order]
        depth = np.arange(1, self.deep + 1)
        differences = []
        for graph, shade in zip(range(len(GRAPHS)), (0.0, 0.5, 1.0), strict=True):
            differences += [
                observed_curve(depth, _spread(observed["relu"][graph]), GRAPHS[graph], shade=shade),
                predicted_curve(depth, _spread(predicted["theory"][graph]), shade=shade),
            ]
        distances = []
        for graph, shade in zip(range(len(GRAPHS)), (0.0, 0.5, 1.0), strict=True):
            mean = observed["relu"][graph].mean(0)
            distances.append(
                observed_curve(
                    depth,
                    _distance(mean, predicted["walk"][graph]),
                    GRAPHS[graph],
                    shade=shade,
                )
            )
            theory = _distance(predicted["theory"][graph], predicted["walk"][graph])
            distances.append(predicted_curve(depth, theory, shade=shade))
        widths = observed["widths"]
        single = _distance(observed["by_width"], predicted["theory"][0, WIDTH_DEPTH - 1]).T
        law = single.mean(0)[0] * np.sqrt(widths[0] / widths)
        return (
            panel(
                f"Karate club: who moves member 1 in {DEPTH} layers",
                "members, in the walk's order",
                "influence",
                observed_curve(place, moved, "ReLU networks", kind="points"),
                predicted_curve(place, predicted["theory"][0, DEPTH - 1, 0][order], "theory"),
                rival_curve(place, predicted["walk"][0, DEPTH - 1, 0][order], "walk"),
            ),
            panel(
                "How far ReLU networks are from the walk",
                "layers",
                "total variation",
                *distances,
            ),
            panel(
                "Nodes become alike, on an expander soon",
                "layers",
                "nodes' differences",
                *differences,
                log="y",
            ),
            panel(
                "One network's noise",
                "width",
                "total variation",
                observed_curve(widths, single, "from theory", kind="points"),
                predicted_curve(widths, law, "width^−½"),
                log="xy",
            ),
        )


def _powers(P: np.ndarray, depth: int) -> np.ndarray:
    """Return P, …, P^k with rows that sum to one, ``(k, n, n)``."""
    powers = [P]
    for _ in range(depth - 1):
        powers.append(powers[-1] @ P)
    stacked = np.stack(powers)
    return stacked / stacked.sum(-1, keepdims=True)


def _distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the total variation between rows, mean over nodes x, of arrays ``(..., nodes, n)``."""
    return np.abs(one - other).sum(-1).mean(-1) / 2


def _square(samples: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Estimate the squared distance of the mean of samples ``(graphs, m, ...)`` from ``(graphs, ...)`` without bias.

    It is the mean of products ⟨a − c, b − c⟩ over pairs of different samples, here as its m jackknife pseudo-values.
    """
    away = np.moveaxis(samples - centre[:, None], 1, 0).reshape(samples.shape[1], -1)
    products = away @ away.T
    np.fill_diagonal(products, 0.0)
    m = len(away)
    whole = products.sum()
    without = (whole - 2 * products.sum(0)) / ((m - 1) * (m - 2))
    return whole / (m - 1) - (m - 1) * without


def _norm(values: np.ndarray) -> float:
    return float((values**2).sum())


def _spread(rows: np.ndarray) -> np.ndarray:
    """Return how much nodes x differ in what moves them: the distance of rows from their mean, ``(...)``."""
    return _distance(rows, rows.mean(-2, keepdims=True))


def _along(away: np.ndarray, direction: np.ndarray, shown: np.ndarray) -> float:
    """Return the component of a deviation along a direction, at some depths."""
    return float((away * direction)[:, shown].sum() / (direction[:, shown] ** 2).sum())


def _ratio(rows: np.ndarray) -> np.ndarray:
    """Return the nodes' differences on the expander over those on the ring, of ``(graphs, ..., k, n, n)``."""
    differences = _spread(rows)[..., DEPTH - 1]
    return differences[GRAPHS.index("regular")] / differences[GRAPHS.index("ring")]


def _rate(rows: np.ndarray, depths: np.ndarray) -> np.ndarray:
    """Return by how much the log of the nodes' differences changes per layer: of ``(..., k, n, n)``, ``(...)``."""
    logs = np.moveaxis(np.log(_spread(rows))[..., depths - 1], -1, 0)
    across = depths - depths.mean()
    return np.tensordot(across, logs, 1) / (across**2).sum()
