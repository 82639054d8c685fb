"""The best number of rounds of neighbour averaging for classifying nodes depends on the graph.

After k rounds a node's class is read correctly with probability Φ(SNR_k), where SNR_k is the signal-to-noise ratio of
the node's average and Φ the normal distribution function. A weighted sum of all rounds gets more nodes right than the
best single round. Every node of a graph has one normal reading of its class, and a round replaces this reading by the
mean over the node and its neighbours. After k rounds the class signal is the mean of the classes over a walk of k
steps, and the noise is larger the more uneven the walk's distribution is. On two blocks each round divides the noise by
about the root of the degree, until the walk has seen the graph. Each round also multiplies the class signal by one
fixed factor, for ever. So dense graphs are best read after two rounds, and rings late. A sum of all rounds also removes
the common part of late rounds, which does not depend on the class.
"""

from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import ndtr

from steepest import kit
from steepest.claims.expressivity.depth_of_averaging.experiment import (
    Noise,
    read,
    ring_of_arcs,
    two_blocks,
)
from steepest.claims.expressivity.depth_of_averaging.theory import (
    Averages,
    averages,
    chance_of,
    chance_of_each,
    chances,
    least_squares,
)
from steepest.nn.types import Values

ROUNDS = 8
RING = "ring"


class Setting(NamedTuple):
    """Graphs and the classes of their nodes.

    Attributes: graphs: adjacency of each, ``(graphs, n, n)``. classes: ±1, ``(graphs, n)``. shuffled: the classes in
    random order, ``(graphs, n)``.
    """

    graphs: Values
    classes: Values
    shuffled: Values


@kit.claim
class DepthOfAveraging(kit.Claim[Setting]):
    """Two blocks of random edges, at several degrees, and a ring of two arcs; one normal reading at each node."""

    degrees: tuple[kit.Positive, ...] = kit.param(
        (4.0, 8.0, 16.0),
        "mean numbers of neighbours in graphs of two blocks",
        scope=kit.choices((4.0, 8.0, 16.0), (5.0, 10.0, 20.0), (6.0, 12.0, 24.0)),
    )
    nodes: Annotated[int, kit.Within(20, 2000)] = kit.param(
        300, "nodes of each graph, half of them in each class", scope=kit.choices(200, 300, 400)
    )
    across: kit.Fraction = kit.param(
        0.2,
        "share of edges that join the blocks",
        scope=kit.between(0.15, 0.22, "then all rounds gain little where neighbours are few"),
    )
    strength: kit.Positive = kit.param(0.4, "μ/σ of the readings", scope=kit.between(0.3, 0.5))
    noise: Noise = kit.param(
        "normal",
        "law of the noise: normal or cauchy",
        unit="word",
        scope=kit.choices("normal", why="Φ is of normal noise"),
    )
    groups: kit.Seeds = kit.param(40, "groups of draws of the readings")
    draws: kit.Count = kit.param(150, "draws in each group")

    kind = "theorem"
    says = {
        "read correctly with probability Φ(SNR_k)": "accuracy",
        "for classifying nodes depends on the graph": "best",
        "A weighted sum of all rounds gets more nodes right than the best single round": (
            "together",
            "gain",
        ),
    }
    tiny = {"degrees": (4.0, 8.0), "nodes": 40, "groups": 4, "draws": 20}
    full = {"nodes": 1000, "groups": 100, "draws": 200}
    out_of_scope = {"noise": "cauchy", "groups": 3}

    @property
    def names(self) -> tuple[str, ...]:
        """Return what graphs are called."""
        return (*(f"degree {degree:g}" for degree in self.degrees), RING)

    def axes(self):
        return {"graph": self.names, "k": tuple(range(ROUNDS + 1))}

    def check_fields(self) -> None:
        if self.nodes % 2:
            raise kit.UserError(
                f"nodes must be even, for two classes of a size, got {self.nodes}; try 300"
            )
        if 2 * max(self.degrees) >= self.nodes:
            raise kit.UserError(
                f"degrees must be below half of the nodes, got {max(self.degrees):g} and {self.nodes}"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        blocks = [two_blocks(self.nodes, degree, self.across, rng) for degree in self.degrees]
        graphs, classes = map(np.stack, zip(*blocks, ring_of_arcs(self.nodes), strict=True))
        return Setting(graphs, classes, rng.permuted(classes, axis=1))

    def hypotheses(self, setting):
        normal = float(self.noise == "normal")
        yield kit.assume("whether the noise is normal", normal, "==", 1, "choose --noise normal")

    def predict(self, setting):
        laws = self.laws(setting)
        single = np.stack([chances(law) for law in laws])
        together = np.array([chance_of(law, least_squares(law)) for law in laws])
        return kit.law(
            accuracy=("graph k", single),
            best=("graph", single.argmax(1)),
            together=("graph", together),
            gain=("graph", together - single.max(1)),
        )

    def laws(self, setting: Setting) -> list[Averages]:
        """Return the law of the averages on each graph."""
        pairs = zip(setting.graphs, setting.classes, strict=True)
        return [averages(graph, classes, self.strength, ROUNDS) for graph, classes in pairs]

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        single, together = self.look(setting.graphs, setting.classes, self.noise, rng)
        blind, blind_together = self.look(setting.graphs, setting.shuffled, self.noise, rng)
        heavy, heavy_together = self.look(setting.graphs, setting.classes, "cauchy", rng)
        return kit.seen(
            accuracy=("seed graph k", single),
            together=("seed graph", together),
            blind=("seed graph k", blind),
            blind_together=("seed graph", blind_together),
            heavy=("seed graph k", heavy),
            heavy_together=("seed graph", heavy_together),
        )

    def look(
        self, graphs: Values, classes: Values, noise: Noise, rng: np.random.Generator
    ) -> tuple[Values, Values]:
        """Return shares of nodes that are told, ``(groups, graphs, rounds + 1)``, and by all rounds."""
        shares = [
            read(
                graph,
                labels,
                self.strength,
                ROUNDS,
                groups=self.groups,
                draws=self.draws,
                noise=noise,
                rng=rng,
            )
            for graph, labels in zip(graphs, classes, strict=True)
        ]
        single, together = zip(*shares, strict=True)
        return np.stack(single, 1), np.stack(together, 1)

    def derive(self, law, seen):
        """Return the best number of rounds in each group of draws, and what all rounds gain over the best one."""
        best = seen.accuracy.mean("seed").argmax("k")
        return {
            "best": seen.accuracy.argmax("k"),
            "gain": seen.together - seen.accuracy.isel(k=best).drop_vars("k"),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "accuracy",
            law.accuracy,
            seen.accuracy,
            0.025,  # the interval takes 0.012 after many rounds, when nodes err together
            absolute=True,
            label="share of nodes that are told after k rounds",
        )
        yield kit.follows(
            "best",
            law.best,
            seen.best,
            1.25,  # a round more or less: where two are nearly as good, draws differ
            absolute=True,
            label="best number of rounds, mean over groups of draws",
        )
        yield kit.follows(
            "together",
            law.together,
            seen.together,
            0.01,  # the interval takes 0.002
            absolute=True,
            label="share of nodes that all rounds together tell",
        )
        yield kit.follows(
            "gain",
            law.gain,
            seen.gain,
            0.25,  # the interval takes 0.1 on the sparsest graph
            label="more of them than the best single number of rounds tells",
        )

    def rivals(self, setting, law):
        laws = self.laws(setting)
        quiet = [self.strength / np.sqrt(np.einsum("zkk->kz", of.noise)) for of in laws]
        degrees = np.array([*self.degrees, 4.0])
        across = np.array([*[self.across] * len(self.degrees), 0.0])
        stays = (1 + degrees * (1 - 2 * across)) / (1 + degrees)
        growth = stays * np.sqrt(degrees + 1)
        tree = self.strength * growth[:, None] ** np.arange(ROUNDS + 1)
        of_each_node = np.array([chance_of_each(of) for of in laws])
        singles = law.accuracy.max("k")
        yield kit.rival(
            "the class does not fade",
            "each round averages more noise away",
            accuracy=("graph k", np.stack([ndtr(values).mean(1) for values in quiet])),
            best=("graph", np.full(len(laws), ROUNDS)),
        )
        yield kit.rival(
            "Φ(μ/σ · (λ√(d + 1))^k)",
            "walks do not return: noise falls by the root of the degree each round",
            id="tree",
            accuracy=("graph k", ndtr(tree)),
        )
        yield kit.rival(
            "two rounds are best",
            "the talk: two layers do better than more",
            best=("graph", np.full(len(laws), 2)),
        )
        yield kit.rival(
            "all rounds are as good as the best one",
            "the readout learns which depth works best",
            together=singles,
        )
        yield kit.rival(
            "Φ(√(vᵀC⁻¹v)) with all rounds",
            "weights could be each node's own",
            together=("graph", of_each_node),
            gain=("graph", of_each_node - singles.values),
        )

    def controls(self, seen):
        yield kit.control(
            "classes in random order on the same graphs",
            "neighbours say nothing of a class",
            accuracy=seen.blind,
            together=seen.blind_together,
        )
        yield kit.control(
            "noise of Cauchy's law",
            "means of such noise are as large as one of it",
            id="cauchy",
            accuracy=seen.heavy,
            together=seen.heavy_together,
        )

    def figure(self, law, seen, rivals):
        places = np.arange(len(self.names))
        densest = len(self.degrees) - 1
        wrong = (
            {"no returns": rivals["tree"].accuracy.isel(graph=densest, drop=True)} if rivals else {}
        )
        yield kit.curves(
            "Dense graphs are best read soon, rings late",
            law.accuracy,
            seen.accuracy,
            over="k",
            by="graph",
            x="rounds of averaging k",
            y="nodes that are told",
            rivals=wrong,
            ylim=(0.5, 1),
        )
        yield kit.panel(
            "All rounds together tell more than the best one",
            "graph: " + ", ".join(self.names),
            "nodes that are told",
            kit.observed_curve(places, seen.together.mean("seed"), "all rounds", kind="points"),
            kit.predicted_curve(places, law.together.values, "theory"),
            kit.observed_curve(
                places,
                seen.accuracy.mean("seed").max("k"),
                "best number of rounds",
                kind="points",
                shade=0.8,
            ),
            kit.predicted_curve(places, law.accuracy.max("k").values),
            ylim=(0.5, 1),
        )
