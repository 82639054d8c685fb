"""With weight decay, quadratic networks add mod p at maximum margin, with one frequency per neuron.

The margin is γ = √(2/27)/(√p (p−1)), and all frequencies have equal shares of the size. Weight decay λΣ‖θ‖³ of the
neurons θ sets their size, log((p−1)(γ/λ−1))/γ, and nothing else. The decay need not be small: by the derivation, the
best networks differ only in size up to λ = γ(p−1)/p. From this decay on, no network is better than a network of zeros.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.modular_margin import experiment, theory
from steepest.claims.training.modular_margin.point import ModularMarginPoint

ENDS = ("least", "most")


@kit.claim
class ModularMargin(kit.Claim[None]):
    """All p² sums, a layer of neurons (u(a) + v(b))²w, cross-entropy and Adam."""

    primes: tuple[kit.Count, ...] = kit.param(
        (5, 7, 11), "p, odd", scope=kit.choices((5, 7, 11), (5, 11), (7, 13))
    )
    decays: tuple[kit.Positive, ...] = kit.param(
        (3e-4, 1e-3, 3e-3), "λ", scope=kit.choices((3e-4, 1e-3, 3e-3), (4e-4, 2e-3))
    )
    neurons: kit.Count = kit.param(
        16, "neurons for each frequency", unit="neurons", scope=kit.between(12, 20)
    )
    steps: kit.Count = kit.param(
        1500, "steps of each training", unit="steps", scope=kit.between(1500, 2000)
    )
    seeds: kit.Seeds = kit.param(4, "trainings of each kind")

    kind = "theorem"
    says = {
        "quadratic networks add mod p at maximum margin": "margin",
        "one frequency per neuron": "own",
        "all frequencies have equal shares": "weight",
        "sets their size, log((p−1)(γ/λ−1))/γ": "size",
    }
    tiny = {"primes": (5, 7), "decays": (1e-3, 3e-3), "steps": 600, "seeds": 3}
    full = {"primes": (5, 7, 11, 17), "decays": (3e-4, 1e-3), "steps": 3000}
    out_of_scope = {"primes": (5, 7), "decays": (1e-3, 0.1), "steps": 40, "seeds": 3}
    point = ModularMarginPoint

    def axes(self):
        return {"prime": self.primes, "decay": self.decays, "end": ENDS}

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        limit = theory.no_size_from(np.array(self.primes)).min()
        yield kit.assume(
            "numbers p that are even",
            sum(p % 2 == 0 for p in self.primes),
            "==",
            0,
            "half of p is a frequency of another kind",
        )
        yield kit.assume(
            "largest decay, over that from which on nothing is learned",
            max(self.decays) / limit,
            "<",
            0.7,
            "near it trainings take long",
        )

    def predict(self, setting):
        p = np.array(self.primes)
        column = p[:, None]
        # equal parts of all (p − 1)/2 frequencies
        alike = np.repeat(2 / (column - 1), len(ENDS), axis=1)
        return kit.law(
            margin=("prime decay", theory.largest_margin(column) + np.zeros(len(self.decays))),
            size=("prime decay", theory.size(column, np.array(self.decays))),
            own=1.0,
            weight=("prime end", alike),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        shape = (self.seeds, len(self.primes), len(self.decays))
        names = (*experiment.Learned._fields, "before")
        sums = {name: np.empty(shape) for name in names}
        table = {name: np.empty(shape) for name in names}
        for place, p in enumerate(self.primes):
            of_sums = self.learned(rng, experiment.addition(p), self.steps)
            # a third of the steps shows that a table at random has other margins
            of_table = self.learned(rng, experiment.random_table(rng, p), self.steps // 3)
            for name in sums:
                sums[name][:, place] = of_sums[name]
                table[name][:, place] = of_table[name]
        cell = "seed prime decay"
        return kit.seen(
            margin=(cell, sums["margin"]),
            before=(cell, sums["before"]),
            size=(cell, sums["size"]),
            own=(cell, sums["in_one_frequency"]),
            weight=(cell + " end", np.stack([sums["least"], sums["most"]], -1)),
            margin_of_table=(cell, table["margin"]),
            size_of_table=(cell, table["size"]),
            own_of_table=(cell, table["in_one_frequency"]),
            weight_of_table=(cell + " end", np.stack([table["least"], table["most"]], -1)),
        )

    def learned(
        self, rng: np.random.Generator, correct: kit.Values, steps: int
    ) -> dict[str, kit.Values]:
        """Train on a table with each decay, and return what is learned, ``(seeds, decays)`` each."""
        neurons = self.neurons * (correct.shape[1] - 1) // 2
        decays = np.tile(self.decays, self.seeds)
        trained = experiment.train(rng, correct, neurons, decays, steps)
        of_end = experiment.learned(trained.weights, correct)._asdict()
        of_end["before"] = experiment.learned(trained.earlier, correct).margin
        return {name: values.reshape(self.seeds, -1) for name, values in of_end.items()}

    def run_conditions(self, observed):
        change = np.abs(observed["before"] / observed["margin"] - 1)
        yield kit.assume(
            "largest change of a margin in the last tenth of the steps",
            change.max(),
            "<",
            0.003,  # a third of the margin
            "trainings must have ended: choose more --steps",
        )

    def judge(self, law, seen):
        yield kit.follows(
            "margin",
            law.margin,
            seen.margin,
            0.01,  # exact; the smallest of all margins is the last to come there, up to 0.3 % in 1500 steps
            label="margin over size",
        )
        yield kit.follows(
            "size",
            law.size,
            seen.size,
            0.005,  # exact, as the margin
            label="size at each decay",
        )
        yield kit.follows(
            "own",
            law.own,
            seen.own,
            0.01,  # exact at the end of training
            over="prime decay",
            label="share of a neuron in one frequency",
        )
        yield kit.follows(
            "weight",
            law.weight,
            seen.weight,
            0.01,  # exact at the end of training
            label="shares of the rarest and the commonest frequency",
        )

    def rivals(self, setting, law):
        p = np.array(self.primes)[:, None]
        over_decays = np.ones(len(self.decays))
        yield kit.rival(
            "one frequency",
            "a single frequency computes all sums",
            margin=("prime decay", theory.one_frequency(p) * over_decays),
        )
        yield kit.rival(
            "√(2/27)/p√p",
            "the margin is that over the mean of all labels",
            id="mean_of_all",
            margin=law.margin * (law.prime - 1) / law.prime,
        )
        yield kit.rival(
            "log((p−1)γ/λ)/γ",
            "decay is slight",
            id="slight",
            size=("prime decay", theory.size_of_slight_decay(p, np.array(self.decays))),
        )
        yield kit.rival(
            "half of the mean to one and a half",
            "starts prefer some frequencies",
            weight=law.weight * xarray.DataArray([0.5, 1.5], coords={"end": list(ENDS)}),
        )
        yield kit.rival(
            "all frequencies in each neuron",
            "neurons need no frequency",
            own=2 / (min(self.primes) - 1),
        )

    def controls(self, seen):
        yield kit.control(
            "labels at random",
            "a table at random has no frequencies",
            margin=seen.margin_of_table,
            size=seen.size_of_table,
            own=seen.own_of_table,
            weight=seen.weight_of_table,
        )

    def figure(self, law, seen, rivals):
        first = {"decay": self.decays[0]}
        at_first = lambda margin: margin.sel(first, drop=True)
        wrong = (
            {
                name: at_first(rivals[id].margin)
                for name, id in (("one frequency", "one_frequency"), ("√(2/27)/p√p", "mean_of_all"))
            }
            if rivals
            else {}
        )
        yield kit.curves(
            "The margin: all frequencies together",
            at_first(law.margin),
            at_first(seen.margin),
            over="prime",
            x="p",
            y="margin over size",
            rivals=wrong,
            log="xy",
        )
        yield kit.curves(
            "The size: decay sets it, and sets nothing else",
            law.size,
            seen.size,
            over="decay",
            by="prime",
            x="decay λ",
            y="Σ‖θ‖³",
            name="p = {}",
            rivals={"slight decay": rivals["slight"].size} if rivals else {},
            log="xy",
        )
