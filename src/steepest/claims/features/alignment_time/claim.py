"""On μ-orthogonally separable data, small ReLU neurons select their class by the time arcosh(1/μ).

By then, a neuron that saw an example of its class at the start sees all examples of its class, and only them. The time
depends on μ, not on the number n of examples. A two-layer ReLU network starts small on μ-orthogonally separable data of
unit length: the signed examples s_i = y_i x_i (−y_i x_i for neurons of the other sign) have cosines ≥ μ. While slopes
of the loss hardly change, directions of neurons follow ``u' = (I − u uᵀ) G``, where G is the sum of the s_i of all
examples that the neuron sees. Selection has ended when ``⟨u, s_i⟩ > 0`` for all i: the neuron sees its own examples and
no others. The sources bound the time of selection by (log n)/μ or (log n)/√μ. The time is at most arcosh(1/μ), which
two examples reach, and n does not enter. After selection tan(θ/2), with θ the angle to the class's sum x₊, falls like
exp(−‖x₊‖ t). Times are for the summed loss; the mean loss takes n times as long.
"""

from typing import Annotated, Any, NamedTuple

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.alignment_time.experiment import train
from steepest.claims.features.alignment_time.sets import Sets, sees_own, separability, unit
from steepest.claims.features.alignment_time.theory import lengths, selection_time, worst
from steepest.linalg import sequential
from steepest.nn.data import orthogonally_separable

CHAIN = 0.01  # cosine of two examples of a chain that are not neighbours
OTHERS = 2  # copies of the other class's example, where a start sees only that
LATE = 1.001  # of a bound: what steps of finite length cost


class Setting(NamedTuple):
    """Sampled data, slow data, two examples with one repeated, chains, and starts that see only the other class."""

    drawn: tuple[Sets, ...]  # one an entry of examples, smallest first
    searched: Sets  # a set each of searched × seeds
    pairs: Sets  # a set each of copies × μ
    chains: Sets  # a set each of seeds × links
    opposite: Sets


@kit.claim
class AlignmentTime(kit.Claim[Setting]):
    """Small networks on sampled data, two examples at many μ, chains, and starts that oppose the other class."""

    examples: tuple[kit.Count, ...] = kit.param(
        (4, 12, 36),
        "n of the drawn sets, increasing",
        unit="examples",
        scope=kit.choices((4, 12, 36), (6, 24)),
    )
    searched: tuple[kit.Count, ...] = kit.param(
        (3, 6, 12),
        "n of the sets that are searched, increasing",
        unit="examples",
        scope=kit.choices(
            (3, 6, 12), (4, 8), why="slow data of more examples take a longer search"
        ),
    )
    dimension: kit.Count = kit.param(3, "d of the drawn sets", scope=kit.between(3, 6))
    mu: kit.Fraction = kit.param(
        0.02, "least y_i y_j cos(x_i, x_j) aimed at by drawn sets", scope=kit.between(0.01, 0.2)
    )
    width: kit.Count = kit.param(30, "neurons of the drawn networks", unit="neurons")
    seeds: kit.Seeds = kit.param(20, "drawn sets of each size, and of searches and chains")
    least_mu: Annotated[float, kit.Within(1e-6, 0.1)] = kit.param(
        1e-3,
        "smallest μ of the two examples, and of searches",
        scope=kit.between(3e-4, 1e-2, "smaller ones take a longer search"),
    )
    mus: kit.Count = kit.param(8, "values of μ from there to 0.3")
    copies: tuple[kit.Count, ...] = kit.param(
        (1, 4, 16, 64),
        "copies of the example not seen, n − 1",
        unit="examples",
        scope=kit.choices((1, 4, 16, 64), (1, 3, 9)),
    )
    links: tuple[kit.Count, ...] = kit.param(
        (2, 8, 32), "n of the chains", unit="examples", scope=kit.choices((2, 8, 32), (2, 4, 16))
    )
    climb: kit.Count = kit.param(1500, "changes tried in search of slow data")
    scale: kit.Positive = kit.param(
        1e-12,
        "ε of the start",
        scope=kit.between(1e-14, 1e-10, "larger ones bend the loss before selection has ended"),
    )
    flipped: kit.Fraction = kit.param(
        0.0,
        "part of the labels that is flipped",
        scope=kit.choices(0.0, why="flipped labels end separability"),
    )

    kind = "limit"
    says = {
        "sees all examples of its class, and only them": "longest",
        "by the time arcosh(1/μ)": "sharp",
        "not on the number n of examples": ("longest", "sharp"),
    }
    tiny = {
        "examples": (4,),
        "searched": (3, 4),
        "width": 8,
        "seeds": 3,
        "least_mu": 0.03,
        "mus": 3,
        "copies": (1, 2, 4),
        "links": (2, 4),
        "climb": 200,
    }
    full = {"seeds": 30, "width": 100, "mus": 16, "links": (2, 4, 8, 16, 32, 64)}
    out_of_scope = {"flipped": 0.3}

    @property
    def cosines(self) -> np.ndarray:
        """Return the values of μ of the two examples, shape ``(mus,)``."""
        return np.geomspace(self.least_mu, 0.3, self.mus)

    @property
    def angles(self) -> np.ndarray:
        """Return the angles δ of starts to the direction opposite to their pull, shape ``(8,)``."""
        return np.geomspace(0.03, 1e-9, 8)

    def axes(self):
        return {
            "size": self.examples,
            "searched_size": self.searched,
            "copies": self.copies,
            "mu": tuple(self.cosines.tolist()),
            "links": self.links,
            "angle": tuple(self.angles.tolist()),
        }

    def check_fields(self) -> None:
        """Refuse chains and sets of one example."""
        if min(self.links) < 2 or min(*self.examples, *self.searched, self.dimension) < 2:
            raise kit.UserError("links, examples, searched and dimension must be at least 2")

    def setting(self, key):
        most = max(self.examples)
        one = lambda k: orthogonally_separable(k, most, self.dimension, self.mu)
        draw = kit.compiled(jax.vmap(lambda k: (one(k).x, one(k).y)))
        x, y = map(np.asarray, draw(kit.keys(key, self.seeds)))
        rng = kit.numpy_generator(key)
        y = np.where(rng.random(y.shape) < self.flipped, -y, y)
        shape = (self.seeds, self.width)
        drawn = tuple(
            Sets(
                x[:, :n],
                y[:, :n],
                unit(rng.normal(size=(*shape, self.dimension))),
                rng.choice([-1.0, 1.0], shape),
            )
            for n in self.examples
        )
        return Setting(drawn, self.search(rng), self.pairs(rng), self.chains(rng), self.opposite())

    @sequential
    def search(self, rng: np.random.Generator) -> Sets:
        """Return sets of each size with starts that see some of both classes, changed for long times of selection.

        A change is kept if it brings the time of selection by exact arcs nearer to the bound, or further beyond it.
        """
        sizes = np.repeat(self.searched, self.seeds)
        count = len(sizes)
        largest = max(self.searched)
        real = (np.arange(largest) < sizes[:, None])[..., None]
        y = np.tile(np.where(np.arange(largest) % 2, -1.0, 1.0), (count, 1))
        sign = np.ones((count, 1))
        shape = (count, largest, 4)
        centre = unit(rng.normal(size=(count, 1, 4)))
        x = real * y[..., None] * unit(centre + 0.1 * rng.normal(size=shape))
        # across the centre, so that it sees about half of each class
        across = rng.normal(size=centre.shape)
        u = unit(across - (across * centre).sum(-1, keepdims=True) * centre)
        sets = Sets(x, y, u, sign)
        best = self.slowness(sets)
        for _ in range(self.climb):
            size = 10 ** rng.uniform(-4, 0, (count, 1, 1))
            moved = real * (rng.random((*shape[:2], 1)) < 0.5)
            turned = rng.random((count, 1, 1)) < 0.7
            tried = sets._replace(
                x=real * unit(sets.x + size * moved * rng.normal(size=shape) + ~real),
                u=unit(sets.u + size * turned * rng.normal(size=u.shape)),
            )
            slowness = self.slowness(tried)
            better = slowness > best
            best = np.where(better, slowness, best)
            sets = sets._replace(
                x=np.where(better[:, None, None], tried.x, sets.x),
                u=np.where(better[:, None, None], tried.u, sets.u),
            )
        return sets

    def slowness(self, sets: Sets) -> np.ndarray:
        """Return the time of selection over its bound, −1 where a start does not see both classes, ``(sets,)``."""
        products = np.einsum("sjd,snd->sn", sets.u, sets.x)
        sees_both = ((products > 0) & (sets.y < 0)).any(-1) & sees_own(sets)[:, 0]
        allowed = sees_both & (separability(sets) >= self.least_mu)
        times = selection_time(sets)[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(allowed, times / worst(sets)[:, 0], -1.0)

    def pairs(self, rng: np.random.Generator) -> Sets:
        """Return a seen and copies of an unseen example for every number of copies and every μ, in the plane."""
        mu = np.tile(self.cosines, len(self.copies))
        copies = np.repeat(self.copies, self.mus)
        p = rng.uniform(0.01, 0.5, len(mu))
        second = np.stack([mu, np.sqrt(1 - mu**2)], -1)
        filled = np.arange(max(self.copies)) < copies[:, None]
        x = np.concatenate(
            [np.broadcast_to([[1.0, 0.0]], (len(mu), 1, 2)), filled[..., None] * second[:, None]], 1
        )
        u = np.stack([p, -np.sqrt(1 - p**2)], -1)
        return Sets(x, np.ones(x.shape[:2]), u[:, None], np.ones((len(mu), 1)))

    def chains(self, rng: np.random.Generator) -> Sets:
        """Return chains with random cosines of neighbours, and starts that see the first example only."""
        most = max(self.links)
        sets = self.seeds * len(self.links)
        x = np.zeros((sets, most, most))
        u = np.zeros((sets, 1, most))
        cosines = np.repeat(rng.uniform(0.2, 0.45, self.seeds), len(self.links))
        for place, (cosine, n) in enumerate(zip(cosines, self.links * self.seeds, strict=True)):
            gram = np.full((n, n), CHAIN)
            link = np.arange(n - 1)
            gram[link, link + 1] = cosine
            gram[link + 1, link] = cosine
            np.fill_diagonal(gram, 1.0)
            x[place, :n, :n] = np.linalg.cholesky(gram)
            products = np.where(np.arange(n) == 0, 0.01, -1.0)
            u[place, 0, :n] = np.linalg.solve(x[place, :n, :n], products)
        return Sets(x, np.ones((sets, most)), unit(u), np.ones((sets, 1)))

    def opposite(self) -> Sets:
        """Return an own example and copies of another, with starts at the angles δ from the latter's opposite pull."""
        mu = 0.1
        other = np.array([1.0, 0.0])  # s of the other class; x is opposite
        own = np.array([mu, np.sqrt(1 - mu**2)])
        x = np.array([own] + OTHERS * [-other])
        y = np.array([1.0] + OTHERS * [-1.0])
        u = np.stack([-np.cos(self.angles), np.sin(self.angles)], -1)
        sets = len(self.angles)
        return Sets(
            np.broadcast_to(x, (sets, *x.shape)),
            np.broadcast_to(y, (sets, len(y))),
            u[:, None],
            np.ones((sets, 1)),
        )

    def hypotheses(self, setting):
        least = min(float(separability(sets).min()) for sets in setting.drawn)
        yield kit.assume(
            "μ of the drawn data", least, ">", 0, "the data are not orthogonally separable"
        )
        yield kit.assume(
            "share of searches that found a start on both classes",
            float((self.slowness(setting.searched) > 0).mean()),
            "==",
            1,
            "raise --climb",
        )
        yield kit.assume("scale ε of the start", self.scale, "<=", 1e-8, "choose a smaller --scale")

    @sequential
    def predict(self, setting):
        bounds = [worst(sets) for sets in setting.drawn]
        chains = worst(setting.chains).reshape(self.seeds, -1)
        return kit.law(
            searched=(
                "searched_size seed",
                worst(setting.searched).reshape(-1, self.seeds),
                "time",
            ),
            pairs=("copies mu", worst(setting.pairs).reshape(len(self.copies), -1), "time"),
            drawn_bound=("size seed start", bounds, "time"),
            chain_bound=("seed links", chains, "time"),
            drawn=(
                "size seed",
                [_mean(sets, selection_time(sets)) for sets in setting.drawn],
                "time",
            ),
            chains=("seed links", selection_time(setting.chains).reshape(self.seeds, -1), "time"),
            rates=("size seed", [_mean(sets, lengths(sets)) for sets in setting.drawn], "1/time"),
            opposite=1 / OTHERS,
        )

    @sequential
    def observe(self, setting, key):
        runs = [train(sets, self.scale, turn=True) for sets in setting.drawn]
        pairs, _, _ = train(setting.pairs, self.scale)
        aside, _, _ = train(out_of_plane(setting.pairs), self.scale)
        chains, _, _ = train(setting.chains, self.scale)
        searched, _, _ = train(setting.searched, self.scale)
        opposite, _, _ = train(setting.opposite, self.scale, every=True)
        sees = [sees_own(sets) for sets in setting.drawn]
        # zero where a neuron sees no example of its class: there is no bound of its time
        singly = [np.where(see, times, 0.0) for see, (times, _, _) in zip(sees, runs, strict=True)]
        lanes = list(zip(setting.drawn, runs, strict=True))
        by_copies = lambda times: times.reshape(len(self.copies), -1)
        return kit.seen(
            searched=("searched_size seed", searched.reshape(-1, self.seeds), "time"),
            pairs=("copies mu", by_copies(pairs), "time"),
            pairs_aside=("copies mu", by_copies(aside), "time"),
            drawn_each=("size seed start", singly, "time"),
            drawn=("size seed", [_mean(sets, times) for sets, (times, _, _) in lanes], "time"),
            rates=("size seed", [_mean(sets, rates) for sets, (_, rates, _) in lanes], "1/time"),
            finished=np.mean([done for _, _, done in runs]),
            chains=("seed links", chains.reshape(self.seeds, -1), "time"),
            opposite=("angle", opposite[:, 0], "time"),
        )

    def run_conditions(self, observed):
        ended = float(observed["finished"])
        yield kit.assume("share of trainings that ended", ended, "==", 1, "raise LONGEST")

    def derive(self, law, seen):
        """Return the time per log(1/δ) of starts near the opposite of their pull."""
        slope = np.polyfit(-np.log(seen.angle.values), seen.opposite.values, 1)[0]
        return {"slope": xarray.DataArray(slope)}

    def judge(self, law, seen):
        yield kit.at_most(
            "longest",
            LATE * law.searched,
            seen.searched,
            each=True,
            label="time of selection on searched data, against arcosh(1/μ) − artanh p₀",
        )
        yield kit.follows(
            "sharp",
            law.pairs,
            seen.pairs,
            0.002,
            label="two examples: time of selection, arcosh(1/μ) − artanh p₀",
        )
        yield from self.judge_drawn(law, seen)
        yield kit.at_most(
            "longest_chain",
            LATE * law.chain_bound,
            seen.chains,
            each=True,
            label="time of selection on chains, against the bound",
        )
        yield kit.follows(
            "chains",
            law.chains,
            seen.chains,
            0.005,
            label="chains: time of selection, against exact straight pieces",
        )
        yield kit.follows(
            "opposite",
            law.opposite,
            seen.slope,
            0.01,
            absolute=True,
            label=f"time per log(1/δ) at δ from −G, G of {OTHERS} equal examples of the other class",
        )

    def judge_drawn(self, law, seen):
        """Compare times and rates on drawn sets."""
        # of a set all of whose neurons have selected at the start the time is zero, and no ratio to it exists
        typical = law.drawn.mean("seed")
        yield kit.at_most(
            "longest_drawn",
            LATE * law.drawn_bound,
            seen.drawn_each,
            each=True,
            label="time of selection on drawn data, against the bound",
        )
        yield kit.follows(
            "drawn",
            law.drawn / typical,
            seen.drawn / typical,
            0.005,
            absolute=True,
            label="drawn data: mean time of selection, against exact straight pieces",
        )
        yield kit.follows(
            "rate",
            law.rates,
            seen.rates,
            0.002,
            label="rate at which tan(θ/2) falls after selection, ‖x₊‖",
        )

    def rivals_of_pairs(self, law):
        """Return other laws of the time that two examples take."""
        mu = law.mu
        bound = np.arccosh(1 / mu)
        last = bound.isel(mu=-1, drop=True)
        beyond = mu[-1].drop_vars("mu") / mu
        start = bound - law.pairs  # artanh p₀
        n = law.copies + 1
        pairs = lambda times: np.maximum(times - start, 1e-3)
        yield kit.rival(
            "time ∝ 1/μ",
            "the bound of the talk, read as a law and equal at the largest μ",
            id="talk",
            pairs=pairs(last * beyond),
        )
        yield kit.rival(
            "time ∝ 1/√μ",
            "the bound of the paper, read as a law and equal at the largest μ",
            id="paper",
            pairs=pairs(last * np.sqrt(beyond)),
        )
        yield kit.rival(
            "time ∝ log n",
            "both sources have it; equal at two examples",
            pairs=pairs(bound * np.log(n) / np.log(2)),
        )
        yield kit.rival(
            "log(1/μ) in the place of arcosh(1/μ)", "the leading order", pairs=pairs(np.log(1 / mu))
        )
        yield kit.rival(
            "selection ends by 0.98 (arcosh(1/μ) − artanh p₀)",
            "the bound could have room",
            searched=0.98 * law.searched,
            pairs=0.98 * law.pairs,
        )

    def rivals(self, setting, law):
        mean = lambda values: (
            ("size", "seed"),
            [_mean(sets, of_size) for sets, of_size in zip(setting.drawn, values, strict=True)],
        )
        links = law.links - 1
        yield from self.rivals_of_pairs(law)
        yield kit.rival(
            "the time of a chain is proportional to its links",
            "each link must be met before the next",
            chains=law.chains.isel(links=0, drop=True) * links / links[0].drop_vars("links"),
        )
        yield kit.rival(
            "only own examples pull",
            "the class that a neuron turns to is what moves it",
            drawn=mean([selection_time(sets, others=False) for sets in setting.drawn]),
        )
        yield kit.rival(
            "tan(θ/2) falls at the rate Σ‖x_i‖",
            "as if all examples of a class were parallel",
            rates=mean([lengths(sets, count=True) for sets in setting.drawn]),
        )
        yield kit.rival(
            "tan(θ/2) falls at the least rate that μ allows",
            "what μ alone guarantees; the sources' bound of convergence has μ too",
            id="least_rate",
            rates=mean([lengths(sets, least=True) for sets in setting.drawn]),
        )
        yield kit.rival(
            "time log(1/δ) near −G, however many examples pull",
            "one example bounds the time",
            id="one_pull",
            opposite=1.0,
        )
        yield kit.rival(
            "starts near −G take no longer",
            "a bound in n and μ for all neurons that end in their class",
            opposite=0.0,
        )

    def controls(self, seen):
        longest = seen.opposite.isel(angle=-1, drop=True)
        yield kit.control(
            f"a start at {self.angles[-1]:g} from −G that sees the other class only",
            "no cone of own examples pulls on it, so that its time has no bound in μ",
            id="opposite_start",
            searched=longest,
            drawn_each=longest,
            chains=longest,
        )
        yield kit.control(
            "starts beside the plane of the two examples",
            "the example seen pulls a start out of the plane of the two towards the other one, too",
            pairs=seen.pairs_aside,
        )
        yield kit.control(
            "the largest drawn sets in the place of the smallest",
            "more examples pull harder",
            id="sizes_exchanged",
            drawn=(seen.drawn.dims, seen.drawn.values[::-1]),
            rates=(seen.rates.dims, seen.rates.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        limit = [0.0, float(np.arccosh(1 / self.least_mu))]
        sizes: list[Any] = []
        for i, n in enumerate(self.examples):
            sees = seen.drawn_each[i].values > 0
            bounds = law.drawn_bound[i].values[sees]
            times = seen.drawn_each[i].values[sees]
            shade = i / len(self.examples)
            sizes.append(kit.observed_curve(bounds, times, f"n = {n}", kind="points", shade=shade))
        by_size = ("searched_size", "seed")
        flat = lambda array: array.transpose(*by_size).values.ravel()
        times = seen.opposite.values
        angles = self.angles
        yield self.pairs_panel(law, seen)
        yield kit.panel(
            "No neuron takes longer than the bound",
            "(arcosh(1/μ) − artanh p₀)/min‖x‖",
            "time of selection",
            *sizes,
            kit.observed_curve(flat(law.searched), flat(seen.searched), "searched", kind="points"),
            kit.predicted_curve(limit, limit, "bound"),
        )
        yield kit.curves(
            "The time of a chain rises with its length, then falls",
            law.chains,
            seen.chains,
            over="links",
            x="links n",
            y="time of selection",
            log="x",
        )
        yield kit.panel(
            "Opposite to the other class no bound holds",
            "δ, angle to −G",
            "time of selection",
            kit.observed_curve(angles, times, "neurons", kind="points"),
            kit.predicted_curve(
                angles, times[0] + float(law.opposite) * np.log(angles[0] / angles), "log(1/δ)/‖G‖"
            ),
            log="x",
        )

    def pairs_panel(self, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
        """Draw the time that two examples take over μ."""
        mu = self.cosines
        bound = np.arccosh(1 / mu)
        whole = seen.pairs.values + bound - law.pairs.values
        curves = [
            kit.observed_curve(mu, times, f"n = {copies + 1}", kind="points", shade=i / len(whole))
            for i, (copies, times) in enumerate(zip(self.copies, whole, strict=True))
        ]
        return kit.panel(
            "Two examples: logarithmic in μ, whatever n",
            "μ",
            "time of selection from p₀ = 0",
            *curves,
            kit.predicted_curve(mu, bound, "arcosh(1/μ)"),
            kit.rival_curve(mu, bound[-1] * np.sqrt(mu[-1] / mu), "1/√μ"),
            kit.rival_curve(mu, bound[-1] * mu[-1] / mu, "1/μ"),
            log="xy",
            ylim=(1, 100),
        )


def out_of_plane(pairs: Sets) -> Sets:
    """Return two examples with starts of the same first coordinate, half of the rest of them out of the plane."""
    wide = lambda vectors: np.concatenate([vectors, np.zeros((*vectors.shape[:-1], 1))], -1)
    u = wide(pairs.u)
    u[..., 2] = -u[..., 1] / np.sqrt(2)
    u[..., 1] /= np.sqrt(2)
    return pairs._replace(x=wide(pairs.x), u=u)


def _mean(sets: Sets, values: np.ndarray) -> np.ndarray:
    """Return means over the neurons that see an example of their class, ``(sets,)``."""
    sees = sees_own(sets)
    return np.where(sees, values, 0.0).sum(-1) / sees.sum(-1)
