"""Message passing by sums tells graphs apart just as colour refinement does, round by round; by means and maxima fewer.

Colour refinement gives every node a new colour from its own and those of its neighbours, as a multiset. Networks whose
nodes add up what their neighbours send see exactly as much: at k layers, for almost all weights, as k rounds. Those
that average see refinement by proportions, and wide ones that take the largest see refinement by sets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Annotated, NamedTuple

import jax
import numpy as np
from scipy.spatial.distance import pdist, squareform

from steepest.claim import (
    Check,
    Claim,
    Control,
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
    compiled,
    equal,
    keys,
    numpy_generator,
    observed_curve,
    order,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.graphs import By, Graphs, refine, small
from steepest.nn.networks import Aggregate, GraphInput, message_passing

SAME = 1e-9
"""Distance below which two representations are the same; rounding is 1e-13, the smallest true distance 1e-4."""
DIRECTIONS = 8
"""Random directions in which representations are compared."""
SETS = ("plain", "coloured")
SEES: dict[Aggregate, By] = {"sum": "multiset", "mean": "proportion", "max": "set"}
"""What each way to aggregate sees of colours."""
HARD = ("6-ring, 2 triangles", "decalin, bicyclopentyl", "rook, Shrikhande")
"""Pairs of graphs that are not isomorphic, and alike to refinement."""


class Setting(NamedTuple):
    """Lists of graphs, each twice: as it is and, in the second half of the list, with its nodes in another order."""

    plain: Graphs
    coloured: Graphs
    pairs: np.ndarray  # (pairs, 2, 16, 16); of the last pair refinement tells the two apart

    @property
    def lists(self) -> dict[str, Graphs]:
        """Return the lists by name."""
        return dict(zip(SETS, (self.plain, self.coloured), strict=True))


@dataclass(frozen=True)
class WeisfeilerLehman(Claim):
    """Random networks on all graphs of six nodes, and on all graphs of five nodes in two colours."""

    nodes: Annotated[int, Within(5, 7)] = 6  # of the graphs without colours [nodes]
    coloured_nodes: Annotated[int, Within(3, 5)] = 5  # of the graphs in two colours [nodes]
    depth: Annotated[int, Within(2, 8)] = 4  # largest number k of layers, and of rounds [1]
    width: Annotated[int, Within(2, 1024)] = 128  # of every layer [neurons]
    networks: Seeds = 3  # random networks of each kind [1]
    types: Annotated[int, Within(3, 6)] = 4  # of elements of a multiset [1]
    largest: Annotated[int, Within(2, 6)] = 5  # most elements of a multiset [1]
    node_ids: bool = (
        False  # whether random features tell every node from every other [true or false]
    )

    kind = "theorem"
    statement = (
        r"f_k(G)=f_k(H)\;\Longleftrightarrow\;\{\!\{c^{(k)}_v\}\!\}_{v\in G}=\{\!\{c^{(k)}_v\}\!\}_{v\in H},\qquad "
        r"c^{(k+1)}_v=\big(c^{(k)}_v,\{\!\{c^{(k)}_u:u\sim v\}\!\}\big)"
    )
    source = "Jegelka's talk of 29 January in the notes [@vodrahalli2019]; [@xu2019]"
    corrections = ()
    remarks = (
        "That no network sees more than refinement follows by induction, whatever its weights. That almost every one "
        "sees as much, at any width, follows for φ = tanh from the linear independence of the functions tanh(⟨w, s⟩ + "
        "b) of (w, b) at different s: a sum or mean over two different multisets, or proportions, then differs except "
        "on a null set of weights. For maxima it is no theorem at a given width: a point must be the largest in "
        "some coordinate, which wide networks give with high probability. At width 64 two of 40 "
        "networks miss a pair of graphs of five nodes, at 128 none of 144 did.",
        "The talk says “as discriminative as the WL test”, that is with as many layers as the test needs rounds; what "
        "is judged is that k layers see what k rounds do, for every k.",
        "Prediction is combinatorial. It is judged which pairs of graphs are told apart, not only how many classes "
        "there are; every graph comes with a copy whose nodes are in another order, which nothing may tell from it.",
        "A node without neighbours aggregates zero, which networks tell from every sum, mean or maximum that occurs; "
        "in refinement it sees the empty multiset. At one number of nodes proportions of all nodes are as good as "
        "counts, so that mean aggregation with a readout by sums sees what it sees by means.",
        "Representations of two graphs are either equal up to rounding or at width 128 at a distance of 10⁻⁴ and more "
        "in some of eight random directions; a pair in between would put the run out of range.",
    )
    headline = ("sum_pairs", "sum_classes", "mean_classes", "max_classes", "order")
    full = {"nodes": 7, "networks": 10}
    tiny = {"depth": 2, "networks": 3, "coloured_nodes": 4, "largest": 3}
    out_of_scope = {"node_ids": True}

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        return Setting(
            _with_copies(small(self.nodes), rng),
            _with_copies(small(self.coloured_nodes, colours=2), rng),
            _pairs(),
        )

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return [
            assume(
                "features that tell nodes apart",
                self.node_ids,
                "==",
                0,
                "then isomorphic graphs are told apart too",
            ),
            assume("width", self.width, ">=", 128, "narrow networks miss maxima; raise --width"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        classes = {
            f"{aggregate}_{name}": refine(graphs.adjacency, graphs.colours, self.depth, by).graphs
            for aggregate, by in SEES.items()
            for name, graphs in setting.lists.items()
        }
        return Prediction(
            **{name: ("depth graph", labels[1:]) for name, labels in classes.items()},
            **{f"{name}_classes": _classes(labels[-1]) for name, labels in classes.items()},
            hard=0.0,  # distance of the hard pairs
            sums=("size", [comb(n + self.types, n) for n in self.sizes]),
            means=("size", [_proportions(self.types, n) for n in self.sizes]),
            maxima=("size", [_subsets(self.types, n) for n in self.sizes]),
        )

    @property
    def sizes(self) -> range:
        """Return the largest sizes of multisets of which the different ones are counted."""
        return range(1, self.largest + 1)

    def observe(self, setting: Setting, key: Key) -> Observation:
        for_weights, for_features = jax.random.split(key)
        rng = numpy_generator(for_features)
        net = message_passing(2, self.width, self.depth)
        params = compiled(jax.vmap(net.init))(keys(for_weights, self.networks))
        features = [_indicators(graphs.colours) for graphs in (setting.plain, setting.coloured)]
        ids = [rng.standard_normal(numbers.shape) for numbers in features]
        given = ids if self.node_ids else features
        networks = {aggregate: self.network(aggregate) for aggregate in SEES}
        arrays = {}
        unclear = []
        for (name, graphs), numbers in zip(setting.lists.items(), given, strict=True):
            adjacency = graphs.adjacency.astype(float)
            for aggregate, through in networks.items():
                label = f"{aggregate}_{name}"
                division = _labelled(np.asarray(through(params, adjacency, numbers)))
                arrays[label] = ("network depth graph", division.labels)
                arrays[f"{label}_gap"] = ("network depth end", division.gap)
                unclear.append(division.unclear)
        plain = setting.plain.adjacency.astype(float)
        linear = np.asarray(self.network("sum", "linear")(params, plain, features[0]))
        numbered = np.asarray(networks["sum"](params, plain, ids[0]))
        arrays["linear_plain"] = ("network depth graph", _labelled(linear).labels)
        arrays["ids_plain"] = ("network depth graph", _labelled(numbered).labels)
        hard = _indicators(np.zeros(setting.pairs.shape[:3], int))
        outputs = np.asarray(networks["sum"](params, setting.pairs, hard))
        distances = np.abs(outputs[:, :, 0] - outputs[:, :, 1]).max(-1) / np.abs(outputs).max(
            (2, 4)
        )
        return Observation(
            **arrays,
            **self.multisets(rng),
            hard=("network pair depth", distances),
            unclear=max(unclear),
        )

    def network(self, aggregate: Aggregate, activation: str = "tanh") -> Callable[..., jax.Array]:
        """Return a compiled function of parameters, adjacency and features: ``(networks, graphs, k, width)``."""
        net = message_passing(2, self.width, self.depth, aggregate, activation=activation)
        one = lambda params, adjacency, x: net.apply(params, GraphInput(adjacency, x))
        return compiled(jax.vmap(one, (0, None, None)))

    def multisets(self, rng: np.random.Generator) -> dict[str, tuple]:
        """Return how many multisets up to each size are told apart by sums, means and maxima of random features."""
        counts = np.array(list(np.ndindex((self.largest + 1,) * self.types)))
        counts = counts[counts.sum(1) <= self.largest]  # (multisets, types)
        total = counts.sum(1)
        one = rng.standard_normal((self.networks, self.types, 1))
        many = rng.standard_normal((self.networks, self.types, self.width))
        integers = np.broadcast_to(np.arange(self.types)[:, None], one.shape)
        present = np.where(counts[:, :, None] > 0, 0.0, -np.inf)
        parts = np.maximum(total, 1)[:, None]
        counted: dict[str, list] = {"sums": [], "means": [], "maxima": [], "integers": []}
        for scalar, vectors, whole in zip(one, many, integers, strict=True):
            largest = np.where(total[:, None] > 0, (present + vectors).max(1), 0.0)
            values = {
                "sums": counts @ scalar,
                "means": counts @ scalar / parts,
                "maxima": largest,
                "integers": counts @ whole,
            }
            for name, numbers in values.items():
                counted[name].append([_different(numbers[total <= n]) for n in self.sizes])
        return {name: ("network size", numbers) for name, numbers in counted.items()}

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume(
                "pairs of graphs that are neither together nor apart",
                float(observed["unclear"]),
                "==",
                0,
                "rounding hides what differs; raise --width or lower --depth",
            )
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks: list[Check] = []
        classes = {}
        for aggregate, by in SEES.items():
            labels = [f"{aggregate}_{name}" for name in SETS]
            wrong = [_misjudged(observed[label], predicted[label]) for label in labels]
            checks.append(
                agreement(
                    f"{aggregate}_pairs",
                    max(wrong),
                    0.0,
                    label=f"{aggregate}: pairs of graphs judged otherwise than by {by}s, at most",
                )
            )
        for aggregate in SEES:
            # of all graphs without colours; at one colour only sums see much of them, so the others in two colours
            name = "plain" if aggregate == "sum" else "coloured"
            label = f"{aggregate}_{name}"
            classes[aggregate] = _classes(observed[f"{aggregate}_coloured"])[:, -1]
            checks.append(
                equal(
                    f"{aggregate}_classes",
                    float(predicted[f"{label}_classes"]),
                    _classes(observed[label])[:, -1],
                    0.0,
                    aggregate="all",
                    label=f"{aggregate}: classes of the {name} graphs at {self.depth} layers",
                )
            )
        checks += [
            # the ranking is predicted: the smallest is what refinement sees least of
            order(
                "order",
                sorted(SEES, key=lambda name: float(predicted[f"{name}_coloured_classes"])),
                classes,
                label="classes of the coloured graphs",
            ),
            agreement(
                "hard_pairs",
                np.abs(observed["hard"][:, :-1] - predicted["hard"]).max(),
                SAME,
                label=f"sum: relative distance of {'; '.join(HARD)}",
            ),
        ]
        words = {"sums": "sums, one number each", "means": "means", "maxima": "maxima"}
        for name, label in words.items():
            checks.append(
                equal(
                    f"multisets_by_{name}",
                    float(predicted[name][-1]),
                    observed[name][:, -1],
                    0.0,
                    aggregate="all",
                    label=f"multisets of {self.types} types told apart by {label}",
                )
            )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        isomorphic = {}
        for name, graphs in setting.lists.items():
            numbers = np.arange(len(graphs.colours) // 2)
            isomorphic[f"sum_{name}"] = ("depth graph", np.tile(numbers, (self.depth, 2)))
            isomorphic[f"sum_{name}_classes"] = len(numbers)

        def borrowed(one: str, other: str) -> dict[str, object]:
            copied = {}
            for name in SETS:
                copied[f"{one}_{name}"] = ("depth graph", predicted[f"{other}_{name}"])
                copied[f"{one}_{name}_classes"] = predicted[f"{other}_{name}_classes"]
            return copied

        once = {}
        for name in (f"{aggregate}_{name}" for aggregate in SEES for name in SETS):
            first = predicted[name][0]
            once[name] = ("depth graph", np.tile(first, (self.depth, 1)))
            once[f"{name}_classes"] = _classes(first)
        rounds = refine(setting.plain.adjacency, setting.plain.colours, self.depth + 1).graphs
        later = {"sum_plain": ("depth graph", rounds[2:])}
        everything = ("size", predicted["sums"])
        return [
            Rival(
                "isomorphism",
                predicted.replace(**isomorphic),
                "the network sees the whole graph",
                label="sums tell all graphs apart that are not isomorphic",
            ),
            Rival(
                "mean_as_sum",
                predicted.replace(**borrowed("mean", "sum"), means=everything),
                "on graphs of one degree it is the same",
                label="means see as much as sums",
            ),
            Rival(
                "max_as_mean",
                predicted.replace(**borrowed("max", "mean"), maxima=("size", predicted["means"])),
                "neither sees how many neighbours there are",
                label="maxima see as much as means",
            ),
            Rival(
                "one_round",
                predicted.replace(**once),
                "almost all graphs are told apart by their degrees and those of neighbours",
                label="one round is enough",
            ),
            Rival(
                "round_late",
                predicted.replace(**later),
                "the readout looks at all nodes once more",
                label="k layers see k + 1 rounds",
            ),
            Rival(
                "sums_of_sets",
                predicted.replace(sums=("size", predicted["maxima"])),
                "with one feature a sum cannot hold the counts of several types",
                label="one number tells sets apart and no more",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        labels = lambda name: ("network depth graph", observed[name])
        hard = observed["hard"].copy()
        hard[:, 0] = hard[:, -1]
        rings = Control(
            "rings",
            observed.replace(hard=("network pair depth", hard)),
            "degrees are the same, and refinement tells the two apart in a few rounds",
            label="two rings of 5, or of 4 and 6, joined by a bond",
        )
        return [
            Control(
                "linear",
                observed.replace(sum_plain=labels("linear_plain")),
                "a multiset is told by a nonlinear function of a sum of nonlinear functions",
                label="networks of linear layers",
            ),
            Control(
                "node_ids",
                observed.replace(sum_plain=labels("ids_plain")),
                "then copies of a graph are told apart",
                label="random features at every node",
            ),
            # after two rounds refinement does not tell them apart
            *([rings] if self.depth > 2 else []),
            Control(
                "integers",
                observed.replace(sums=("network size", observed["integers"])),
                "2 + 0 = 1 + 1",
                label="features 0, 1, 2, … to be summed",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        depth = np.arange(1, self.depth + 1)
        shades = {"sum": 0.0, "mean": 0.5, "max": 1.0}
        counted = []
        for name in reversed(SETS):
            graphs = len(predicted[f"sum_{name}"][0]) // 2
            curves = []
            for aggregate, shade in shades.items():
                label = f"{aggregate}_{name}"
                classes = _classes(observed[label])
                curves += [
                    observed_curve(depth, classes, aggregate, kind="points", shade=shade),
                    predicted_curve(depth, _classes(predicted[label]), shade=shade),
                ]
            curves.append(rival_curve(depth, 0 * depth + graphs, "all graphs"))
            title = "in two colours" if name == "coloured" else "without colours"
            counted.append(
                panel(
                    f"Graphs {title} told apart",
                    "layers, rounds",
                    "classes",
                    *curves,
                    ylim=(0, 1.25 * graphs),
                )
            )
        gaps = []
        for aggregate, shade in shades.items():
            gap = observed[f"{aggregate}_coloured_gap"]
            gaps += [
                observed_curve(
                    depth, gap[..., 1], f"{aggregate}, apart", kind="points", shade=shade
                ),
                observed_curve(depth, gap[..., 0] + 1e-17, shade=shade),
            ]
        sizes = np.array(self.sizes)
        multisets = []
        for name, shade in zip(("sums", "means", "maxima"), shades.values(), strict=True):
            multisets += [
                observed_curve(sizes, observed[name], name, kind="points", shade=shade),
                predicted_curve(sizes, predicted[name], shade=shade),
            ]
        multisets.append(rival_curve(sizes, observed["integers"].mean(0), "sums of 0, 1, 2, …"))
        return (
            *counted,
            panel(
                "Representations are equal, or far apart",
                "layers",
                "distance within, between",
                *gaps,
                log="y",
            ),
            panel("Multisets told apart", "largest size", "number", *multisets, log="y"),
        )


class Division(NamedTuple):
    """Which graphs networks tell apart."""

    labels: np.ndarray  # equal where two are not told apart, (networks, k, graphs)
    gap: np.ndarray  # largest distance of those together, smallest of those apart, (networks, k, 2)
    unclear: int  # pairs at a distance near SAME


def _labelled(outputs: np.ndarray) -> Division:
    """Tell graphs apart whose representations, ``(networks, graphs, k, width)``, differ in some random direction."""
    networks, graphs, depth, width = outputs.shape
    directions = np.random.default_rng(0).standard_normal((width, DIRECTIONS)) / width**0.5
    shadows = outputs @ directions
    labels = np.zeros((networks, depth, graphs), int)
    gap = np.zeros((networks, depth, 2))
    unclear = 0
    for network, k in np.ndindex(networks, depth):
        distances = pdist(shadows[network, :, k], "chebyshev")
        together = distances < SAME
        unclear += int(((distances > SAME / 100) & (distances < 100 * SAME)).sum())
        gap[network, k] = (
            distances[together].max(initial=0.0),
            distances[~together].min(initial=np.inf),
        )
        matrix = squareform(together)
        np.fill_diagonal(matrix, True)
        labels[network, k] = matrix.argmax(1)
    return Division(labels, gap, unclear)


def _classes(labels: np.ndarray) -> np.ndarray:
    """Count the different labels of graphs, the last axis."""
    ordered = np.sort(labels, axis=-1)
    return 1 + (np.diff(ordered, axis=-1) > 0).sum(-1)


def _misjudged(labels: np.ndarray, classes: np.ndarray) -> int:
    """Count the pairs that labels ``(networks, k, graphs)`` and classes ``(k, graphs)`` judge differently, at most."""
    worst = 0
    for network in labels:
        for observed, predicted in zip(network, classes, strict=True):
            joint = observed * (classes.max() + 1) + predicted
            worst = max(worst, _together(observed) + _together(predicted) - 2 * _together(joint))
    return worst


def _together(labels: np.ndarray) -> int:
    """Count the pairs of equal labels."""
    counts = np.unique(labels, return_counts=True)[1]
    return int((counts * (counts - 1)).sum()) // 2


def _different(rows: np.ndarray) -> int:
    """Count the rows ``(m, d)`` that differ by more than rounding, projected on one random direction."""
    numbers = np.sort(rows @ np.random.default_rng(0).standard_normal(rows.shape[1]))
    return 1 + int((np.diff(numbers) > SAME).sum())


def _indicators(colours: np.ndarray) -> np.ndarray:
    return (colours[..., None] == np.arange(2)).astype(float)


def _with_copies(graphs: Graphs, rng: np.random.Generator) -> Graphs:
    """Return the graphs, and once more with the nodes of each in another order."""
    orders = rng.permuted(
        np.tile(np.arange(graphs.colours.shape[1]), (len(graphs.colours), 1)), axis=1
    )
    rows = np.arange(len(orders))
    adjacency = graphs.adjacency[rows[:, None, None], orders[:, :, None], orders[:, None, :]]
    colours = graphs.colours[rows[:, None], orders]
    return Graphs(
        np.concatenate([graphs.adjacency, adjacency]), np.concatenate([graphs.colours, colours])
    )


def _subsets(types: int, largest: int) -> int:
    """Count the sets of at most so many of the types."""
    return sum(comb(types, size) for size in range(min(types, largest) + 1))


def _proportions(types: int, largest: int) -> int:
    """Count the proportions of types in multisets of at most so many elements, with those of the empty one.

    Those that need exactly s elements are all C(s + k − 1, k − 1) multisets of s, less those that need a divisor of s.
    """
    needing: dict[int, int] = {}
    for size in range(1, largest + 1):
        smaller = sum(number for divisor, number in needing.items() if size % divisor == 0)
        needing[size] = comb(size + types - 1, types - 1) - smaller
    return 1 + sum(needing.values())


def _ring(nodes: int) -> np.ndarray:
    step = np.roll(np.eye(nodes), 1, axis=1)
    return np.maximum(step, step.T)


def _joined(*rings: int) -> np.ndarray:
    """Return two rings with a bond between them."""
    nodes = sum(rings)
    graph = np.zeros((nodes, nodes))
    graph[: rings[0], : rings[0]] = _ring(rings[0])
    graph[rings[0] :, rings[0] :] = _ring(rings[1])
    graph[0, rings[0]] = 1
    graph[rings[0], 0] = 1
    return graph


def _torus(steps: list[tuple[int, int]]) -> np.ndarray:
    """Return the graph on the 4 × 4 torus whose nodes are joined at these steps, there and back."""
    graph = np.zeros((16, 16))
    for row, column in np.ndindex(4, 4):
        for down, right in steps:
            other = 4 * ((row + down) % 4) + (column + right) % 4
            graph[4 * row + column, other] = 1
            graph[other, 4 * row + column] = 1
    return graph


def _pairs() -> np.ndarray:
    """Return the pairs of graphs, with nodes on their own beside to make them 16: ``(pairs, 2, 16, 16)``."""
    decalin = _ring(10)
    decalin[0, 5] = 1
    decalin[5, 0] = 1
    pairs = (
        (_ring(6), np.kron(np.eye(2), _ring(3))),
        (decalin, _joined(5, 5)),
        (_torus([(0, 1), (0, 2), (1, 0), (2, 0)]), _torus([(0, 1), (1, 0), (1, 1)])),
        (_joined(5, 5), _joined(4, 6)),
    )
    padded = np.zeros((len(pairs), 2, 16, 16))
    for place, pair in enumerate(pairs):
        for side, graph in enumerate(pair):
            padded[place, side, : len(graph), : len(graph)] = graph
    return padded
