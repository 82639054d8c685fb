"""Once a homogeneous network fits, its smoothed margin never falls, and it nears a KKT point.

KKT points are where the optimality conditions of the largest margin hold, for ReLU in Clarke's sense. Gradient flow
with the exponential loss on a network of degree L keeps raising the smoothed margin log(1/Σexp(−u)) / ‖θ‖^L from the
moment that the sum is below one, with u the margins. Its weights tend in direction to points where the optimality
conditions of min ½‖θ‖² under margins of one hold. For ReLU the claim judges that these points are stationary, but not
that multipliers off the margin vanish. No convexity is needed, and there is none. As long as the weights are far from
such a point, the margin must grow: (d log margin)/(d log ‖θ‖) is at least L tan² of the angle between θ and its
velocity. The distance of θ from the cone of gradients is at most what this angle allows.
"""

from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from jax.flatten_util import ravel_pytree

from steepest import kit
from steepest.nn.data import balanced, digits, signs
from steepest.nn.networks import Neurons, two_layer
from steepest.nn.types import Network, Values
from steepest.programs import Kinks, kkt_from_gradients

DEGREE = 2  # L: both layers count
READINGS = 35
MOMENTS = (*range(10, 30, 2), *range(30, READINGS))  # readings at which KKT residuals are computed
WINDOWS = (0, 4, 8, len(MOMENTS) - 1)  # moments between which distances are held against margins
LATE = 6  # exponents are fitted from this moment on
COARSER = 8  # the control takes steps that are longer by this
SMOOTH = 1e-6  # relative drop in a step of relu², whose gradient is continuous
# Sliding weights leave a kink by a step at most; two leave room for a kink that several of them share.
STEPS_FROM_KINK = 2


class Setting(NamedTuple):
    """Images with labels ±1, and starts, one per seed."""

    x: Values  # (n, d)
    y: Values  # (n,)
    starts: Neurons  # w (seeds, h, d), v (seeds, h)


class State(NamedTuple):
    """What a step changes: the weights, and the largest value and largest drop of the smoothed and the plain margin."""

    theta: jax.Array  # (p,)
    best: jax.Array  # (2,)
    drop: jax.Array  # (2,), relative to the largest so far


class Path(NamedTuple):
    """One descent; stacked over networks every array gains axes in front."""

    margins: Values  # u at the readings, (readings, n)
    size: Values  # ‖θ‖ there, (readings,)
    late: Values  # θ at the moments, (moments, p)
    slopes: Values  # the gradients of the margins there, (moments, n, p)
    drop: Values  # largest relative drop of the smoothed margin at any step, ()
    plain_drop: Values  # of the plain margin, ()


@kit.claim
class HomogeneousKkt(kit.Claim[Setting]):
    """Two-layer networks of degree 2 without biases, on scikit-learn's 8 × 8 digits, threes against eights."""

    width: kit.Count = kit.param(
        16,
        "hidden neurons",
        unit="neurons",
        scope=kit.between(14, 18, "wider networks still remember their start at this horizon"),
    )
    each: kit.Count = kit.param(
        20,
        "images of a class",
        unit="images",
        scope=kit.between(16, 22, "larger classes need a longer run"),
    )
    powers: tuple[float, ...] = kit.param(
        (1.0, 2.0), "p of the activation relu(z)^p: ReLU, and a smooth one"
    )
    offset: float = kit.param(0.0, "constant added to the outputs, which ends homogeneity")
    scale: kit.Positive = kit.param(
        0.3,
        "norm of an input weight at the start, in the mean",
        scope=kit.between(
            0.27,
            0.31,
            "from larger starts the limit comes later, and smaller ones leave little distance",
        ),
    )
    horizon: kit.Positive = kit.param(
        2000.0,
        "fall of the logarithm of the risk, about",
        scope=kit.between(2000, 3000, "before, the start is not forgotten"),
    )
    step: kit.Positive = kit.param(
        0.05,
        "fall of the logarithm of the risk in a step, to first order",
        scope=kit.between(0.04, 0.05, "longer steps jump between examples"),
    )
    seeds: kit.Seeds = kit.param(8, "starts")

    kind = "limit"
    says = {
        "its smoothed margin never falls": "every_step",
        "it nears a KKT point": (
            "kkt_distance",
            "stationarity_exponent",
            "complementarity_exponent",
        ),
        "for ReLU in Clarke's sense": "kkt_distance",
    }
    tiny = {"width": 8, "each": 6, "horizon": 50.0, "scale": 0.07, "seeds": 3}
    full = {"width": 32, "seeds": 12, "horizon": 10_000.0}
    out_of_scope = {"offset": 1.0}

    @property
    def names(self) -> tuple[str, ...]:
        """Return the activations in words."""
        words = {1.0: "ReLU", 2.0: "relu²"}
        return tuple(words.get(power, f"relu^{power:g}") for power in self.powers)

    @property
    def allowed(self) -> xarray.DataArray:
        """Return by how much steps may lower the margin, relatively: they cross the kinks of ReLU."""
        allowed = [self.step / 100 if power == 1 else SMOOTH for power in self.powers]
        return xarray.DataArray(allowed, dims="power")

    @property
    def steps(self) -> int:
        """Return how many steps there are."""
        return round(self.horizon / self.step)

    @property
    def marks(self) -> Values:
        """Return the steps that are read."""
        early = np.linspace(0, self.steps // 100, 10, dtype=int)
        late = np.geomspace(self.steps / 90, self.steps, READINGS - 10)
        return np.round(np.concatenate([early, late])).astype(int)

    def axes(self):
        falls = self.marks * self.step
        moments = falls[list(MOMENTS)]
        return {
            "power": self.names,
            "reading": tuple(falls.tolist()),
            "moment": tuple(moments.tolist()),
            "late": tuple(moments[LATE:].tolist()),
        }

    def network(self, power: float) -> Network:
        """Return the network of one activation."""
        net = two_layer(64, self.width, scale=self.scale, power=power)
        return Network(net.init, lambda params, x: net.apply(params, x) + self.offset, net.name)

    def setting(self, key):
        for_data, for_starts = jax.random.split(key)
        data = signs(balanced(digits((3, 8)), self.each, for_data))
        starts = kit.compiled(jax.vmap(self.network(1.0).init))(kit.keys(for_starts, self.seeds))
        return Setting(data.x, data.y, starts)

    def hypotheses(self, setting):
        departures = kit.compiled(self.departures)(setting.starts, setting.x)
        yield kit.assume(
            "departure from homogeneity", max(departures), "<=", 1e-10, "set --offset to 0"
        )
        yield kit.assume(
            "size of the start, scale √(width/horizon), about",
            self.scale * np.sqrt(self.width / self.horizon),
            "<=",
            0.03,
            "the start is not forgotten at this horizon; raise --horizon or lower --scale",
        )

    def departures(self, starts: Neurons, x: jax.Array) -> list[jax.Array]:
        """Return how far f(2θ)/2^L is from f(θ), relative to the largest output, one an activation."""
        departures = []
        for power in self.powers:
            outputs = jax.vmap(self.network(power).apply, (0, None))
            plain = outputs(starts, x)
            doubled = outputs(jax.tree.map(lambda w: 2 * w, starts), x)
            distance = jnp.abs(doubled / 2**DEGREE - plain).max()
            departures.append(distance / jnp.abs(plain).max())
        return departures

    def predict(self, setting):
        late = np.array(self.axes()["late"])
        return kit.law(
            degree=float(DEGREE),
            distance=("late", late ** (-1 / DEGREE)),
            weight=("late", 1 / late),
            gained=1.0,  # ∫ tan² of the distance over ‖θ‖ in the logarithm, at most, over 1/L of that of the margin
            # with the loss's own multipliers Σ q_i (u_i − min u) ≤ n max_z z e^(−z) = n/e, over min u ≈ log(1/R)
            weight_limit=2 * self.each / (np.e * self.horizon),
        )

    def observe(self, setting, key):
        fine, coarse = self.follow_all(setting)
        residuals = {
            f"{name}{suffix}": ("power seed moment", values)
            for suffix, pair in self.residuals(setting, fine).items()
            for name, values in zip(("stationarity", "complementarity"), pair, strict=True)
        }
        dims = "power seed reading"
        return kit.seen(
            log_sum=(dims, _log_sums(fine.margins)),
            size=(dims, fine.size),
            least=(dims, fine.margins.min(-1)),
            lost=("power seed", fine.drop),
            plain_lost=("power seed", fine.plain_drop),
            coarse_log_sum=(dims, _log_sums(coarse.margins)),
            coarse_size=(dims, coarse.size),
            coarse_lost=("power seed", coarse.drop),
            **residuals,
        )

    def follow_all(self, setting: Setting) -> tuple[Path, Path]:
        """Follow all starts with each activation, and again with longer steps; arrays are ``(powers, seeds, …)``."""
        paths = []
        for power in self.powers:
            follow = lambda start, x, y, step, marks, power=power: self.follow(
                start, power=power, x=x, y=y, step=step, marks=marks
            )
            run = kit.compiled(jax.vmap(follow, (0, None, None, None, None)))
            pace = lambda longer, run=run: run(
                setting.starts, setting.x, setting.y, longer * self.step, self.marks // longer
            )
            paths.append((pace(1), pace(COARSER)))
        fine, coarse = zip(*paths, strict=True)
        stacked = lambda lanes: Path(*(np.stack(arrays) for arrays in zip(*lanes, strict=True)))
        return stacked(fine), stacked(coarse)

    def follow(
        self,
        start: Neurons,
        *,
        power: float,
        x: jax.Array,
        y: jax.Array,
        step: jax.Array | float,
        marks: jax.Array | Values,
    ) -> Path:
        """Follow the flow of one network in steps that lower log R by ``step``, to first order."""
        net = self.network(power)
        theta, restore = ravel_pytree(start)
        margins = lambda theta: y * net.apply(restore(theta), x)

        def log_sum(theta: jax.Array) -> tuple[jax.Array, jax.Array]:
            u = margins(theta)
            return jax.nn.logsumexp(-u), u

        def advance(_: int, state: State) -> State:
            (log, u), slope = jax.value_and_grad(log_sum, has_aux=True)(state.theta)
            length = (state.theta @ state.theta) ** (DEGREE / 2)
            # −log Σe^(−u) and min u, each over ‖θ‖^L; both are positive only once Σe^(−u) < 1
            now = jnp.where(log < 0, jnp.stack([-log, u.min()]) / length, 0.0)
            best = jnp.maximum(state.best, now)
            lost = jnp.where(best > 0, 1 - now / best, 0.0)
            drop = jnp.maximum(state.drop, lost)
            return State(state.theta - step * slope / (slope @ slope), best, drop)

        def to_mark(carry: tuple, mark: jax.Array) -> tuple:
            last, state = carry
            state = jax.lax.fori_loop(last, mark, advance, state)
            return (mark, state), state.theta

        at = jnp.asarray(marks)
        begin = (jnp.zeros((), at.dtype), State(theta, jnp.zeros(2), jnp.zeros(2)))
        (_, state), thetas = jax.lax.scan(to_mark, begin, at)
        late = thetas[np.array(MOMENTS)]
        return Path(
            jax.vmap(margins)(thetas),
            jnp.linalg.norm(thetas, axis=-1),
            late,
            jax.vmap(jax.jacrev(margins))(late),
            *state.drop,
        )

    def residuals(self, setting: Setting, path: Path) -> dict[str, Values]:
        """Compute both residuals at every moment, ``(2, powers, seeds, moments)``, with three choices of kinks.

        Without suffix they are those that the descent slides along, which only ReLU has; ``_one_side`` has none, and
        ``_others`` as many other pairs of neurons and images, drawn at random.
        """
        rng = np.random.default_rng(0)
        shape = path.late.shape[:3]
        residuals = {suffix: np.zeros((2, *shape)) for suffix in ("", "_one_side", "_others")}
        for place in np.ndindex(*shape):
            power, seed, moment = place
            u = path.margins[power, seed, MOMENTS[moment]]
            theta = path.late[place]
            slopes = path.slopes[place]
            smooth = kkt_from_gradients(theta, u, slopes, DEGREE)
            for residual in residuals.values():
                residual[:, *place] = smooth.stationarity, smooth.complementarity
            if self.powers[power] == 1:
                pull = np.exp(u.min() - u)
                speed = float(np.linalg.norm(pull / pull.sum() @ slopes))
                reach = STEPS_FROM_KINK * self.step / speed
                pairs = self.reached(setting.x, theta, reach)
                others = rng.permutation(pairs.ravel()).reshape(pairs.shape)
                for suffix, chosen in (("", pairs), ("_others", others)):
                    kinks = self.kinks(setting, theta, chosen)
                    kkt = kkt_from_gradients(theta, u, slopes, DEGREE, kinks)
                    residuals[suffix][:, *place] = kkt.stationarity, kkt.complementarity
        return residuals

    def reached(self, x: Values, theta: Values, reach: float) -> Values:
        """Return which images have a neuron's kink within ``reach`` of its weights, shape ``(n, h)``."""
        w = theta[: -self.width].reshape(self.width, -1)
        # a move of length r in w changes ⟨w, x⟩ by r‖x‖ at most
        return np.abs(x @ w.T) <= reach * np.linalg.norm(x, axis=1, keepdims=True)

    def kinks(self, setting: Setting, theta: Values, pairs: Values) -> Kinks:
        """Return what gradients gain beyond the kinks of the pairs: ``± y_i v_j x_i`` in the weights of neuron j."""
        x = np.asarray(setting.x)
        w = theta[: -self.width].reshape(self.width, -1)
        v = theta[-self.width :]
        image, neuron = np.nonzero(pairs)
        beyond = np.where(np.einsum("kd,kd->k", x[image], w[neuron]) > 0, -1.0, 1.0)
        jump = np.zeros((len(image), len(theta)))
        blocks = jump[:, : -self.width].reshape(len(image), self.width, -1)
        gain = beyond * np.asarray(setting.y)[image] * v[neuron]
        blocks[np.arange(len(image)), neuron] = gain[:, None] * x[image]
        return Kinks(image, jump)

    def run_conditions(self, observed):
        least = observed["least"][..., MOMENTS[0]].min()
        longer = "a start lingers before it fits; raise --horizon or --width"
        yield kit.assume("least margin at the first moment that is compared", least, ">", 0, longer)

    def derive(self, law, seen):
        """Return drops of the smoothed margin, late residuals and norms, and distances over what margins gained."""
        degree = float(law.degree)
        sizes = seen.size.isel(reading=list(MOMENTS)).rename(reading="moment")
        sums = seen.log_sum.isel(reading=list(MOMENTS)).rename(reading="moment")
        late = {"late": law.late}
        at_end = lambda array: (
            array.isel(power=-1, moment=slice(LATE, None), drop=True)
            .rename(moment="late")
            .assign_coords(late)
        )
        late_sizes = sizes.isel(moment=slice(LATE, None)).rename(moment="late")
        margins = np.log(np.maximum(-sums.values, 1e-300)) - degree * np.log(sizes.values)
        return {
            "smoothed_drop": _drop(seen.log_sum, seen.size, degree),
            "distances": at_end(seen.stationarity),
            "weights": at_end(seen.complementarity),
            "norms": late_sizes.assign_coords(late),
            "over_gained": xarray.DataArray(
                _over_gained(seen.stationarity.values, np.log(sizes.values), margins, degree),
                {"power": seen.power},
                ("power", "seed", "window"),
            ),
        }

    def judge(self, law, seen):
        grown = [
            kit.power(
                f"size_{i}",
                1 / float(law.degree),
                seen.norms.isel(power=i, drop=True),
                # margins that still rise by a percent or two take 0.01 from it
                0.03,
                over="late",
                label=f"{name}: exponent of ‖θ‖ in log(1/R)",
            )
            for i, name in enumerate(self.names)
        ]
        yield kit.agrees(
            "margin_drop",
            seen.smoothed_drop,
            1e-6,
            label="largest relative drop of the smoothed margin between readings",
        )
        yield kit.agrees(
            "every_step",
            seen.lost / self.allowed,
            1.0,
            label="largest drop in any step, over what a step across a kink may cost",
        )
        yield kit.at_most(
            "kkt_distance",
            law.gained,
            seen.over_gained,
            over="power window",
            each=True,
            label="mean square distance to stationarity, over what the margin gained",
        )
        yield kit.power(
            "stationarity_exponent",
            law.distance,
            seen.distances,
            # the interval takes 0.03, and what is left of faster terms at log 1/R = 3000 as much
            0.1,
            over="late",
            label="relu²: exponent of the distance to stationarity in log(1/R)",
        )
        yield kit.power(
            "complementarity_exponent",
            law.weight,
            seen.weights,
            # images just off the margin keep multipliers for long: of some starts the exponent is −0.7 here
            0.3,
            over="late",
            label="relu²: exponent of the weight off the margin in log(1/R)",
        )
        yield from grown
        yield kit.at_most(
            "complementarity",
            law.weight_limit,
            seen.weights.isel(late=-1, drop=True),
            label="relu²: weight off the margin at the end",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "one degree more",
            "biases would raise the degree",
            degree=DEGREE + 1.0,
            distance=law.distance ** (DEGREE / (DEGREE + 1)),
        )
        yield kit.rival(
            "one degree less", "one layer of weights is of degree one", degree=DEGREE - 1.0
        )
        yield kit.rival(
            "distances are paid for by 1/L² of the margin's gain",
            "the degree stands in the velocity and in the margin",
            id="degree_twice",
            gained=1 / DEGREE,
        )
        yield kit.rival(
            "no approach",
            "the problem is not convex, and weights could settle anywhere",
            distance=law.distance**0.0,
            weight=law.weight**0.0,
        )
        yield kit.rival(
            "the distance falls like the weight",
            "both are residuals of one problem, and the weight's bound is 1/log(1/R)",
            distance=law.weight,
        )
        yield kit.rival(
            "the weight falls like the distance",
            "it is how fast the start is forgotten",
            weight=law.distance,
        )

    def controls(self, seen):
        swapped = lambda suffix: {
            name: seen[f"{name}{suffix}"] for name in ("stationarity", "complementarity")
        }
        yield kit.control(
            "the networks at the first reading that is compared",
            "they fit, and that is all: their direction has not come to the limit",
            id="early",
            stationarity=seen.stationarity.isel(moment=0, drop=True),
            complementarity=seen.complementarity.isel(moment=0, drop=True),
            size=seen.size.isel(reading=MOMENTS[0], drop=True),
        )
        yield kit.control(
            "gradients of one side of the kinks",
            "where weights slide along a kink neither side is the flow's",
            **swapped("_one_side"),
        )
        yield kit.control(
            "as many other pairs of neurons and images",
            "they are not at a kink, and more multipliers alone do not help",
            **swapped("_others"),
        )
        yield kit.control(
            "the plain margin",
            "it has no theorem, and the least of the margins may lose while others gain",
            lost=seen.plain_lost,
        )
        yield kit.control(
            f"steps {COARSER} times as long",
            "the theorem is about the flow",
            id="long_steps",
            lost=seen.coarse_lost,
            log_sum=seen.coarse_log_sum,
            size=seen.coarse_size,
        )

    def figure(self, law, seen, rivals):
        fall = seen.reading.values
        at = seen.moment.values
        smoothed = (-seen.log_sum / seen.size**DEGREE).values
        plain = (seen.least / seen.size**DEGREE).values
        fits = seen.log_sum.values.max((0, 1)) < 0
        shades = np.linspace(0, 1, len(self.names))
        curves = lambda values, x: [
            kit.observed_curve(x, v, n, shade=s)
            for v, n, s in zip(values, self.names, shades, strict=True)
        ]
        slope = lambda array, power: array[-1, :, 0].mean().item() * (at / at[0]) ** power
        one_side = seen.stationarity_one_side[0].mean("seed").values
        yield kit.panel(
            "The smoothed margin never falls",
            "fall of log R",
            "margin / ‖θ‖²",
            *curves(smoothed[..., fits], fall[fits]),
            kit.context_curve(fall[fits], plain[0][:, fits].mean(0), "plain margin, ReLU"),
            log="x",
        )
        yield kit.panel(
            "Divided by ‖θ‖³ instead of ‖θ‖² it falls",
            "fall of log R",
            "log(1/Σexp(−u)) / ‖θ‖³",
            kit.rival_curve(fall[fits], (smoothed / seen.size.values)[0][:, fits]),
            log="xy",
        )
        yield kit.panel(
            "Distance of θ from the cone of gradients",
            "fall of log R",
            "relative distance",
            *curves(seen.stationarity.values, at),
            kit.context_curve(at, one_side, "ReLU, one side"),
            kit.predicted_curve(at, slope(seen.stationarity, -1 / DEGREE), "slope −1/2"),
            log="xy",
        )
        yield kit.panel(
            "Weight on examples off the margin",
            "fall of log R",
            "relative weight",
            *curves(seen.complementarity.values, at),
            kit.predicted_curve(at, slope(seen.complementarity, -1.0), "slope −1"),
            log="xy",
        )


def _log_sums(margins: Values) -> Values:
    """Return log Σ exp(−u) over the last axis."""
    least = margins.min(-1)
    return np.log(np.exp(least[..., None] - margins).sum(-1)) - least


def _drop(log_sum: xarray.DataArray, size: xarray.DataArray, degree: float) -> xarray.DataArray:
    """Return the largest relative decrease between readings from the first on at which Σe^{-u} < 1."""
    margin = (-log_sum / size**degree).values
    fits = log_sum.values < 0
    with np.errstate(divide="ignore"):
        fallen = np.where(fits[..., :-1], 1 - margin[..., 1:] / margin[..., :-1], -np.inf)
    return xarray.DataArray(np.maximum(fallen.max(-1), 0.0), dims=log_sum.dims[:-1])


def _over_gained(distance: Values, sizes: Values, margins: Values, degree: float) -> Values:
    """Return ∫ tan² d log ‖θ‖ in each window over 1/L of the margin's gain in its logarithm; infinite where it lost.

    Args:
        distance: of θ from the cone of gradients, relative: the sine of their angle, ``(…, moments)``.
        sizes: log ‖θ‖.
        margins: the logarithm of the smoothed margin.
        degree: L.
    """
    # tan² of the angle from its sine
    tangent = distance**2 / (1 - distance**2)
    paid = (tangent[..., 1:] + tangent[..., :-1]) / 2 * np.diff(sizes, axis=-1)
    ratios = []
    for first, last in pairwise(WINDOWS):
        gained = margins[..., last] - margins[..., first]
        spent = degree * paid[..., first:last].sum(-1)
        ratios.append(np.divide(spent, gained, out=np.full_like(gained, np.inf), where=gained > 0))
    return np.stack(ratios, -1)
