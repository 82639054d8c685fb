"""Graph networks with sum aggregation distinguish graphs exactly as colour refinement does.

They do so round by round: k layers see exactly what k rounds see. Networks that average messages or take maxima tell
fewer graphs apart. Colour refinement, the test of Weisfeiler and Lehman, gives every node a new colour from its own
colour and the multiset of its neighbours' colours. Networks whose nodes add up the messages of their neighbours see
exactly as much: for almost all weights, k layers see as much as k rounds. Networks that average messages see refinement
by proportions, and wide networks that take maxima see refinement by sets.
"""

from collections.abc import Callable
from math import comb
from typing import Annotated, Any, NamedTuple

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity.weisfeiler_lehman.experiment import (
    SAME,
    count_different,
    divide,
    hard_pairs,
    indicators,
    with_copies,
)
from steepest.graphs import By, Graphs, refine, small
from steepest.nn.networks import Aggregate, GraphInput, message_passing

SETS = ("plain", "coloured")
PLAIN = {5: 34, 6: 156, 7: 1044}
"""How many graphs of so many nodes there are."""
COLOURED = {3: 20, 4: 90, 5: 544}
"""How many there are in two colours."""
SEES: dict[Aggregate, By] = {"sum": "multiset", "mean": "proportion", "max": "set"}
"""What each way to aggregate sees of colours."""
HARD = ("6-ring, 2 triangles", "decalin, bicyclopentyl", "rook, Shrikhande", "rings 5 + 5, 4 + 6")
"""Pairs of graphs that are not isomorphic; all but the last are alike to refinement."""


class Setting(NamedTuple):
    """Lists of graphs, each twice: as it is and, in the second half of the list, with its nodes in another order."""

    plain: Graphs
    coloured: Graphs
    pairs: np.ndarray  # HARD, (pairs, 2, 16, 16)


@kit.claim
class WeisfeilerLehman(kit.Claim[Setting]):
    """Random networks on all graphs of six nodes, and on all graphs of five nodes in two colours."""

    nodes: Annotated[int, kit.Within(5, 7)] = kit.param(
        6,
        "nodes of the graphs without colours",
        unit="nodes",
        scope=kit.between(5, 6, "of seven nodes there are so many graphs that a run takes minutes"),
    )
    coloured_nodes: Annotated[int, kit.Within(3, 5)] = kit.param(
        5,
        "nodes of the graphs in two colours",
        unit="nodes",
        scope=kit.between(4, 5, "three nodes hardly tell one round from more"),
    )
    depth: Annotated[int, kit.Within(2, 8)] = kit.param(
        4,
        "largest number k of layers, and of rounds",
        scope=kit.between(3, 5, "two layers tell none of the hard pairs apart"),
    )
    width: Annotated[int, kit.Within(2, 1024)] = kit.param(
        128,
        "width of every layer",
        unit="neurons",
        scope=kit.between(128, 256, "narrow networks miss maxima"),
    )
    networks: kit.Seeds = kit.param(3, "random networks of each kind")
    types: Annotated[int, kit.Within(3, 6)] = kit.param(
        4, "types of elements of a multiset", scope=kit.between(3, 5, "their number grows fast")
    )
    largest: Annotated[int, kit.Within(2, 6)] = kit.param(
        5, "most elements of a multiset", scope=kit.between(3, 5, "their number grows fast")
    )
    node_ids: bool = kit.param(
        False, "whether random features tell every node from every other", unit="true or false"
    )

    kind = "theorem"
    says = {
        "distinguish graphs exactly as colour refinement does": "sum_pairs",
        "They do so round by round": "classes",
        "Networks that average messages or take maxima tell fewer graphs apart": (
            "mean_pairs",
            "max_pairs",
            "order",
        ),
    }
    tiny = {"depth": 2, "networks": 3, "coloured_nodes": 4, "largest": 3}
    full = {"nodes": 7, "networks": 10}
    out_of_scope = {"node_ids": True}

    @property
    def counts(self) -> tuple[int, int]:
        """Return the lengths of both lists, with the copies."""
        return 2 * PLAIN[self.nodes], 2 * COLOURED[self.coloured_nodes]

    def axes(self):
        return {
            "aggregate": tuple(SEES),
            "depth": tuple(range(1, self.depth + 1)),
            "set": SETS,
            "graph": tuple(range(sum(self.counts))),
            "pair": HARD,
            "size": tuple(range(1, self.largest + 1)),
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        return Setting(
            with_copies(small(self.nodes), rng),
            with_copies(small(self.coloured_nodes, colours=2), rng),
            hard_pairs(),
        )

    def hypotheses(self, setting):
        yield kit.assume(
            "features that tell nodes apart",
            self.node_ids,
            "==",
            0,
            "then isomorphic graphs are told apart too",
        )
        yield kit.assume(
            "width", self.width, ">=", 128, "narrow networks miss maxima; raise --width"
        )

    def predict(self, setting):
        alike = []
        classes = []
        for by in SEES.values():
            rounds = [
                refine(graphs.adjacency, graphs.colours, self.depth, by).graphs[1:]
                for graphs in (setting.plain, setting.coloured)
            ]
            first = [np.apply_along_axis(_first_alike, 1, labels) for labels in rounds]
            alike.append(np.hstack([first[0], first[1] + len(setting.plain.colours)]))
            classes.append([[len(set(row)) for row in labels] for labels in rounds])
        pairs = setting.pairs.reshape(-1, *setting.pairs.shape[2:])
        of_pairs = refine(pairs, None, self.depth).graphs[1:].reshape(self.depth, -1, 2)
        sizes = range(1, self.largest + 1)
        return kit.law(
            alike=("aggregate depth graph", alike),
            classes=("aggregate set depth", classes),
            apart=("depth pair", (of_pairs[..., 0] != of_pairs[..., 1]).astype(float)),
            multisets=(
                "aggregate size",
                [
                    [comb(n + self.types, n) for n in sizes],
                    [_proportions(self.types, n) for n in sizes],
                    [_subsets(self.types, n) for n in sizes],
                ],
            ),
        )

    def observe(self, setting, key):
        for_weights, for_features = jax.random.split(key)
        rng = kit.numpy_generator(for_features)
        net = message_passing(2, self.width, self.depth)
        params = kit.compiled(jax.vmap(net.init))(kit.keys(for_weights, self.networks))
        graphs = [setting.plain, setting.coloured]
        features = [indicators(graph_list.colours) for graph_list in graphs]
        ids = [rng.standard_normal(numbers.shape) for numbers in features]
        given = ids if self.node_ids else features
        sums = self.network("sum")
        worlds = {
            "sum": (sums, given),
            "mean": (self.network("mean"), given),
            "max": (self.network("max"), given),
            "linear": (self.network("sum", "linear"), features),
            "numbered": (sums, ids),
        }
        alike = []
        gaps = []
        unclear = []
        for through, inputs in worlds.values():
            divisions = [
                divide(np.asarray(through(params, graph_list.adjacency.astype(float), numbers)))
                for graph_list, numbers in zip(graphs, inputs, strict=True)
            ]
            shifted = divisions[1].labels + len(setting.plain.colours)
            alike.append(np.concatenate([divisions[0].labels, shifted], -1))
            gaps.append(np.stack([division.gap for division in divisions], 1))
            unclear.append(max(division.unclear for division in divisions))
        alike = np.stack(alike, 1)  # (networks, worlds, depth, graphs)
        classes = self.classes(alike)
        blank = indicators(np.zeros(setting.pairs.shape[:3], int))
        apart = [
            _relative_distances(np.asarray(sums(params, setting.pairs, numbers))) > SAME
            for numbers in (blank, rng.standard_normal(blank.shape))
        ]
        kinds = len(SEES)
        return kit.seen(
            alike=("network aggregate depth graph", alike[:, :kinds]),
            classes=("network aggregate set depth", classes[:, :kinds]),
            other_alike=("world network depth graph", np.swapaxes(alike, 0, 1)[kinds:]),
            other_classes=("world network set depth", np.swapaxes(classes, 0, 1)[kinds:]),
            gap=("network aggregate set depth end", np.stack(gaps, 1)[:, :kinds]),
            apart=("network depth pair", apart[0].astype(float)),
            numbered_apart=("network depth pair", apart[1].astype(float)),
            unclear=max(unclear[:kinds]),
            **self.multisets(rng),
        )

    def classes(self, alike: np.ndarray) -> np.ndarray:
        """Count the classes in both lists, ``(networks, worlds, 2, depth)``: graphs that are the first of theirs."""
        first = alike == np.arange(alike.shape[-1])
        plain = self.counts[0]
        return np.stack([first[..., :plain].sum(-1), first[..., plain:].sum(-1)], 2)

    def network(self, aggregate: Aggregate, activation: str = "tanh") -> Callable[..., jax.Array]:
        """Return a compiled function of parameters, adjacency and features: ``(networks, graphs, k, width)``."""
        net = message_passing(2, self.width, self.depth, aggregate, activation=activation)
        one = lambda params, adjacency, x: net.apply(params, GraphInput(adjacency, x))
        return kit.compiled(jax.vmap(one, (0, None, None)))

    def multisets(self, rng: np.random.Generator) -> dict[str, tuple]:
        """Return how many multisets up to each size are told apart by sums, means and maxima of random features."""
        counts = np.array(list(np.ndindex((self.largest + 1,) * self.types)))
        counts = counts[counts.sum(1) <= self.largest]  # (multisets, types)
        total = counts.sum(1)
        scalars = rng.standard_normal((self.networks, self.types, 1))
        vectors = rng.standard_normal((self.networks, self.types, self.width))
        integers = np.arange(self.types)[:, None]
        present = np.where(counts[:, :, None] > 0, 0.0, -np.inf)
        parts = np.maximum(total, 1)[:, None]
        up_to = lambda numbers: [
            count_different(numbers[total <= n]) for n in range(1, self.largest + 1)
        ]
        different = []
        for scalar, vector in zip(scalars, vectors, strict=True):
            highest = np.where(total[:, None] > 0, (present + vector).max(1), 0.0)
            of_sums = counts @ scalar
            different.append([up_to(of_sums), up_to(of_sums / parts), up_to(highest)])
        return {
            "multisets": ("network aggregate size", different),
            "of_integers": ("size", up_to(counts @ integers)),
        }

    def run_conditions(self, observed):
        yield kit.assume(
            "pairs of graphs that are neither together nor apart",
            float(observed["unclear"]),
            "==",
            0,
            "rounding hides what differs; raise --width or lower --depth",
        )

    def judge(self, law, seen):
        off = abs(seen.alike - law.alike)
        last = {"set": "coloured", "depth": self.depth}
        fewer = lambda classes: -classes.sel(last, drop=True).diff("aggregate")
        yield from (
            kit.agrees(
                f"{aggregate}_pairs",
                off.sel(aggregate=aggregate),
                0.0,
                label=f"{aggregate}: first graph not told from each, against refinement by {by}s",
            )
            for aggregate, by in SEES.items()
        )
        yield kit.follows(
            "classes",
            law.classes,
            seen.classes,
            0.0,
            each=True,
            label="classes of graphs at each number of layers",
        )
        yield kit.follows(
            "order",
            fewer(law.classes),
            fewer(seen.classes),
            0.0,
            absolute=True,
            each=True,
            label="coloured graphs: classes that means tell fewer than sums, and maxima than means",
        )
        yield kit.agrees(
            "hard_pairs",
            abs(seen.apart - law.apart),
            0.0,
            label="sum: whether hard pairs are told apart, at each number of layers",
        )
        yield kit.follows(
            "multisets",
            law.multisets,
            seen.multisets,
            0.0,
            each=True,
            label=f"multisets of {self.types} types told apart",
        )

    def rivals(self, setting, law):
        plain, coloured = (count // 2 for count in self.counts)
        numbers = np.concatenate([np.tile(np.arange(plain), 2), np.tile(np.arange(coloured), 2)])
        numbers[2 * plain :] += 2 * plain
        sums = law.aggregate == "sum"
        whole = xarray.DataArray([plain, coloured], dims="set")

        def borrowed(aggregate: str, other: str) -> dict[str, Any]:
            """Return the laws of one aggregation for another."""
            return {
                name: xarray.where(
                    law.aggregate == aggregate, law[name].sel(aggregate=other), law[name]
                )
                for name in ("alike", "classes", "multisets")
            }

        later = refine(setting.plain.adjacency, setting.plain.colours, self.depth + 1).graphs[2:]
        moved = law.alike.copy()
        moved.values[0, :, : 2 * plain] = np.apply_along_axis(_first_alike, 1, later)
        yield kit.rival(
            "sums tell all graphs apart that are not isomorphic",
            "the network sees the whole graph",
            id="isomorphism",
            alike=xarray.where(sums, xarray.DataArray(numbers, dims="graph"), law.alike),
            classes=xarray.where(sums, whole, law.classes),
            apart=1.0,
        )
        yield kit.rival(
            "means see as much as sums",
            "on graphs of one degree it is the same",
            **borrowed("mean", "sum"),
        )
        yield kit.rival(
            "maxima see as much as means",
            "neither sees how many neighbours there are",
            **borrowed("max", "mean"),
        )
        yield kit.rival(
            "one round is enough",
            "degrees of nodes and of their neighbours tell almost all graphs apart",
            alike=law.alike.isel(depth=0, drop=True),
            classes=law.classes.isel(depth=0, drop=True),
        )
        yield kit.rival(
            "k layers see k + 1 rounds", "the readout looks at all nodes once more", alike=moved
        )
        yield kit.rival(
            "one number tells sets apart and no more",
            "with one feature a sum cannot hold the counts of several types",
            multisets=xarray.where(sums, law.multisets.sel(aggregate="max"), law.multisets),
        )

    def controls(self, seen):
        sums = seen.aggregate == "sum"
        instead = lambda world, name: xarray.where(
            sums, seen[f"other_{name}"].isel(world=world), seen[name]
        )
        yield kit.control(
            "networks of linear layers",
            "a multiset is told by a nonlinear function of a sum of nonlinear functions",
            id="linear",
            alike=instead(0, "alike"),
            classes=instead(0, "classes"),
        )
        yield kit.control(
            "random features at every node",
            "then copies of a graph are told apart, and hard pairs at once",
            id="node_ids",
            alike=instead(1, "alike"),
            classes=instead(1, "classes"),
            apart=seen.numbered_apart,
        )
        yield kit.control(
            "means for sums, maxima for means, sums for maxima",
            "each aggregation sees its own",
            **{name: seen[name].roll(aggregate=-1) for name in ("alike", "classes", "multisets")},
        )
        yield kit.control(
            "features 0, 1, 2, … to be summed",
            "2 + 0 = 1 + 1",
            multisets=xarray.where(sums, seen.of_integers, seen.multisets),
        )

    def figure(self, law, seen, rivals):
        panels = []
        for name in reversed(SETS):
            of_set = {"set": name}
            whole = self.counts[SETS.index(name)] // 2
            panels.append(
                kit.curves(
                    f"Graphs {'in two colours' if name == 'coloured' else 'without colours'} told apart",
                    law.classes.sel(of_set),
                    seen.classes.sel(of_set),
                    over="depth",
                    by="aggregate",
                    x="layers, rounds",
                    y="classes",
                    rivals={"all graphs": 0 * law.classes.sel(of_set).sel(aggregate="sum") + whole},
                    ylim=(0, 1.25 * whole),
                )
            )
        gaps = []
        for place, aggregate in enumerate(SEES):
            gap = seen.gap.sel(aggregate=aggregate, set="coloured")
            name = f"{aggregate}, apart"
            look: dict[str, Any] = {"shade": place / 2}
            gaps.append(kit.observed_curve(gap.depth, gap[..., 1], name, kind="points", **look))
            gaps.append(kit.observed_curve(gap.depth, gap[..., 0] + 1e-17, **look))
        yield from panels
        yield kit.panel(
            "Representations are equal, or far apart",
            "layers",
            "distance within, between",
            *gaps,
            log="y",
        )
        yield kit.curves(
            "Multisets told apart",
            law.multisets,
            seen.multisets,
            over="size",
            by="aggregate",
            x="largest size",
            y="number",
            rivals={"sums of 0, 1, 2, …": seen.of_integers},
            log="y",
        )


def _relative_distances(outputs: np.ndarray) -> np.ndarray:
    """Return how far the two of each pair are apart, ``(networks, k, pairs)``."""
    off = np.abs(outputs[:, :, 0] - outputs[:, :, 1]).max(-1)
    return np.swapaxes(off / np.abs(outputs).max((2, 4)), 1, 2)


def _first_alike(labels: np.ndarray) -> np.ndarray:
    """Return the place of the first label that equals each."""
    _, first, classes = np.unique(labels, return_index=True, return_inverse=True)
    return first[classes]


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
