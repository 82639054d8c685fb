"""To first order in its quadratic term, a model fits deformed targets with drifting features.

The quadratic term has the size ε, and the path of training is explicit to the same order. Gradient flow on z = φᵀθ +
(ε/2) θᵀF(x)θ from θ₀ ends at θ^F + εθ^I up to ε², where θ^F is the end for the linear model. In the span of the
training features the flow fits a linear model to targets deformed by the model's own quadratic term. The features drift
by εF(x)(θ^F − θ₀). Outside the span, where the linear model never moves, the end depends on the path, which at every
time is an explicit sum of exponentials. A real network whose output is scaled by α is such a model with ε = 1/α.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.quadratic_model.experiment import (
    TESTS,
    Models,
    Networks,
    QuadraticPoint,
    draw_models,
    draw_networks,
    flows_arrived,
    follow_model,
    follow_network,
    model_theory,
    network,
    network_theory,
)
from steepest.nn.types import Values

# Slopes over a factor eight in ε. The next order is a relative c ε in each remainder, c of order one and of either
# sign, which takes a slope off by up to 0.05 in one model and by 0.01 on average; near pairs of small singular values
# make the average of some draws worse.
MARGIN = 0.03


class Setting(NamedTuple):
    """Random quadratic models and networks on digits."""

    models: Models
    networks: Networks


class Ends(NamedTuple):
    """Results of trained models, over seeds and ε."""

    middle: Values  # θ on the way, (seeds, ε, p)
    end: Values  # θ at the end, (seeds, ε, p)
    fitted: Values  # by the linear part of the trained model at the training inputs, (seeds, ε, m)
    drift: Values  # ∇z(x; θ) − ∇z(x; θ_0) at the test inputs, (seeds, ε, tests, p)
    outputs: Values  # at the test inputs, (seeds, ε, tests)


@kit.claim
class QuadraticModel(kit.Claim[Setting]):
    """Random quadratic models; two-layer tanh networks on threes and eights, their outputs scaled up."""

    epsilon: tuple[kit.Positive, ...] = kit.param(
        (0.0025, 0.005, 0.01, 0.02),
        "ε, how much the models bend",
        scope=kit.choices(
            (0.0025, 0.005, 0.01, 0.02), (0.002, 0.004, 0.008), (0.003, 0.006, 0.012)
        ),
    )
    dimension: kit.Count = kit.param(
        30, "parameters p of a model", scope=kit.between(30, 40, "near m features are badly posed")
    )
    examples: kit.Count = kit.param(
        6, "training inputs m of a model and of a network", scope=kit.between(4, 6)
    )
    seeds: kit.Seeds = kit.param(32, "random models")
    middle: kit.Positive = kit.param(
        1.0, "time at which the flow is looked at on its way", scope=kit.between(0.5, 2.0)
    )
    scales: tuple[kit.Positive, ...] = kit.param(
        (8.0, 16.0, 32.0, 64.0),
        "α, of the networks' outputs",
        scope=kit.choices((8.0, 16.0, 32.0, 64.0), (10.0, 20.0, 40.0), (12.0, 24.0, 48.0)),
    )
    width: kit.Count = kit.param(
        64, "hidden neurons of the networks", unit="neurons", scope=kit.between(48, 96)
    )
    inputs: kit.Count = kit.param(
        16, "principal components of the images", scope=kit.between(12, 20)
    )
    networks: kit.Seeds = kit.param(8, "random networks, each on images of its own")

    kind = "theorem"
    says = {
        "fits deformed targets": ("targets", "parameters"),
        "with drifting features": "drift",
        "the path of training is explicit": ("on_the_way", "outputs", "network"),
    }
    tiny = {"seeds": 3, "networks": 3, "dimension": 8, "examples": 2, "width": 8, "inputs": 6}
    full = {"seeds": 64, "networks": 24, "width": 256, "dimension": 60, "examples": 10}
    out_of_scope = {"examples": 40}
    point = QuadraticPoint

    def axes(self):
        return {
            "epsilon": self.epsilon,
            "scale": self.scales,
            "parameter": tuple(range(self.dimension)),
            "example": tuple(range(self.examples)),
            "test": tuple(range(TESTS)),
        }

    def setting(self, key):
        for_models, for_networks = jax.random.split(key)
        draw = kit.compiled(lambda key: draw_models(key, self.seeds, self.dimension, self.examples))
        networks = draw_networks(
            for_networks, self.networks, self.width, self.examples, self.inputs
        )
        return Setting(Models(*map(np.asarray, draw(for_models))), networks)

    def hypotheses(self, setting):
        least = np.linalg.matrix_rank(setting.models.phi[..., : self.examples]).min()
        advice = "choose --examples below --dimension: the linear model must interpolate"
        yield kit.assume("smallest rank of Φ", least, ">=", self.examples, advice)
        yield kit.assume("largest ε", max(self.epsilon), "<=", 0.05, "the statement is for ε → 0")
        yield kit.assume("smallest α", min(self.scales), ">=", 4, "the statement is for 1/α → 0")

    def predict(self, setting):
        models = setting.models
        ends = [model_theory(models, seed) for seed in range(self.seeds)]
        ways = [model_theory(models, seed, self.middle) for seed in range(self.seeds)]
        linear = np.array([end.linear for end in ends])
        inside = np.array([end.inside for end in ends])
        outside = np.array([end.outside for end in ends])
        bend = np.einsum("sapq,sq->sap", models.forms, linear)  # F(x)θ^F
        squares = np.einsum("sap,sp->sa", bend, linear)
        moved = linear - models.start
        terms = network_theory(network(self.inputs, self.width), setting.networks)
        tests = [term[:, self.examples :] for term in terms]
        test_phi = models.phi[..., self.examples :]
        test_forms = models.forms[:, self.examples :]
        features = lambda theta: np.einsum("spa,sp->sa", test_phi, theta)
        epsilon = np.array(self.epsilon)
        small = 1 / np.array(self.scales)
        return kit.law(
            linear=("seed parameter", linear),
            inside=("seed parameter", inside),
            outside=("seed parameter", outside),
            middle_linear=("seed parameter", [way.linear for way in ways]),
            middle_inside=("seed parameter", [way.inside for way in ways]),
            middle_outside=("seed parameter", [way.outside for way in ways]),
            targets=("seed example", models.y),
            # Y^I: by how much per ε the linear part of the model misses the targets
            deformed=("seed example", -squares[:, : self.examples] / 2),
            drift=("seed test parameter", np.einsum("sapq,sq->sap", test_forms, moved)),
            outputs=("seed test", features(linear)),
            outputs_inside=("seed test", features(inside)),
            outputs_outside=("seed test", features(outside)),
            outputs_bent=("seed test", squares[:, self.examples :] / 2),
            network=("draw test", tests[0]),
            network_inside=("draw test", tests[1]),
            network_outside=("draw test", tests[2]),
            network_bent=("draw test", tests[3]),
            # how what is left over goes with ε and 1/α
            order_one=("epsilon", epsilon),
            order_two=("epsilon", epsilon**2),
            network_one=("scale", small),
            network_two=("scale", small**2),
        )

    def observe(self, setting, key):
        weights = 1.0 + np.arange(self.examples) % 2
        net = network(self.inputs, self.width)
        small = jnp.array(self.epsilon)
        scales = jnp.array(self.scales)

        def bent(one: Models) -> tuple[jax.Array, ...]:
            follow = lambda epsilon, weight: follow_model(
                one.phi, one.forms, one.y, one.start, epsilon, self.middle, weight
            )
            return jax.vmap(lambda weight: jax.vmap(lambda e: follow(e, weight))(small))(both)

        def scaled(one: Networks) -> tuple[jax.Array, ...]:
            follow = lambda scale, weight: follow_network(
                net, one.x, one.y, one.start, scale, weight
            )
            return jax.vmap(lambda weight: jax.vmap(lambda a: follow(a, weight))(scales))(both)

        both = jnp.stack([jnp.ones(self.examples), jnp.asarray(weights)])
        every = kit.compiled(
            lambda models, networks: (jax.lax.map(bent, models), jax.lax.map(scaled, networks))
        )
        models, trained = jax.tree.map(np.asarray, every(setting.models, setting.networks))
        plain, weighted = (self.ends(setting.models, models[0], models[1], at) for at in (0, 1))
        dims = {
            "middle": "seed epsilon parameter",
            "end": "seed epsilon parameter",
            "fitted": "seed epsilon example",
            "drift": "seed epsilon test parameter",
            "outputs": "seed epsilon test",
        }
        unweighted = {name: (dims[name], getattr(plain, name)) for name in dims}
        other = {f"weighted_{name}": (dims[name], getattr(weighted, name)) for name in dims}
        tests = trained[0][..., self.examples :]
        return kit.seen(
            **unweighted,
            **other,
            network=("draw scale test", tests[:, 0]),
            weighted_network=("draw scale test", tests[:, 1]),
            arrived=("flow", np.append(models[2], trained[1])),
        )

    def ends(self, models: Models, middle: Values, end: Values, at: int) -> Ends:
        """Return what models have at the end of the flow, from θ over seeds, weights of the loss, and ε."""
        m = self.examples
        theta = end[:, at]
        epsilon = np.array(self.epsilon)[:, None]
        bend = np.einsum("sapq,seq->seap", models.forms[:, m:], theta)
        linear_part = np.einsum("spa,sep->sea", models.phi, theta)
        squares = np.einsum("seap,sep->sea", bend, theta)
        still = np.einsum("sapq,sq->sap", models.forms[:, m:], models.start)
        return Ends(
            middle[:, at],
            theta,
            linear_part[..., :m],
            epsilon[:, None] * (bend - still[:, None]),
            linear_part[..., m:] + epsilon / 2 * squares,
        )

    def run_conditions(self, observed):
        yield flows_arrived(observed["arrived"])

    def derive(self, law, seen):
        """Return what each theory leaves over, by the name of its check with ``left_`` before it."""
        return {f"left_{name}": left for name, left in self.remainders(law, seen).items()}

    def remainders(self, law: xarray.Dataset, seen: xarray.Dataset) -> dict[str, xarray.DataArray]:
        """Return what each theory leaves over, over seeds and ε, or networks and α."""
        epsilon = xarray.DataArray(np.array(self.epsilon), {"epsilon": list(self.epsilon)})
        small = xarray.DataArray(1 / np.array(self.scales), {"scale": list(self.scales)})
        first = law.inside + law.outside
        middle = law.middle_inside + law.middle_outside
        outputs = law.outputs_inside + law.outputs_outside + law.outputs_bent
        networks = law.network_inside + law.network_outside + law.network_bent
        gaps: dict[str, Any] = {
            "linear": seen.end - law.linear,
            "parameters": seen.end - law.linear - epsilon * first,
            "targets": seen.fitted - law.targets - epsilon * law.deformed,
            "drift": seen["drift"] - epsilon * law["drift"],
            "outputs": seen.outputs - law.outputs - epsilon * outputs,
            "on_the_way": seen.middle - law.middle_linear - epsilon * middle,
            "network_linear": seen.network - law.network,
            "network": seen.network - law.network - small * networks,
        }
        kept = {"seed", "draw", "epsilon", "scale"}
        return {
            name: np.sqrt((gap**2).sum([dim for dim in gap.dims if dim not in kept]))
            for name, gap in gaps.items()
        }

    def judge(self, law, seen):
        labels = {
            "linear": "‖θ_∞ − θ^F‖ against ε",
            "parameters": "‖θ_∞ − θ^F − εθ^I‖ against ε",
            "targets": "‖Φᵀθ_∞ − y − εY^I‖ against ε",
            "drift": "drift of the test features − εF(θ^F − θ₀), against ε",
            "outputs": "test outputs − prediction, against ε",
            "on_the_way": f"‖θ_t − θ^F_t − εθ^I_t‖ against ε at t = {self.middle:g}",
        }
        of_models = [
            kit.power(
                name,
                law.order_one if name == "linear" else law.order_two,
                seen[f"left_{name}"],
                MARGIN,
                over="epsilon",
                label=label,
            )
            for name, label in labels.items()
        ]
        yield from of_models
        yield kit.power(
            "network_linear",
            law.network_one,
            seen.left_network_linear,
            MARGIN,
            over="scale",
            label="networks' test outputs − linear model, against 1/α",
        )
        yield kit.power(
            "network",
            law.network_two,
            seen.left_network,
            MARGIN,
            over="scale",
            label="networks' test outputs − prediction, against 1/α",
        )

    def rivals(self, setting, law):
        models = setting.models
        zero = lambda *names: {name: 0 * law[name] for name in names}
        outside = ("outside", "middle_outside", "outputs_outside", "network_outside")
        yield kit.rival(
            "nothing moves off the span",
            "all that the equation of first order determines at the end",
            **zero(*outside),
        )
        yield kit.rival(
            "off the span only what has moved is bent",
            "as printed, without the parameters at the start",
            outside=("seed parameter", printed_outside(models)),
        )
        yield kit.rival(
            "the features drift by εF(x)(θ₀ − θ^F)",
            "as printed",
            id="printed_drift",
            drift=-law["drift"],
        )
        yield kit.rival(
            "predictions of a linear model on deformed targets",
            "as printed, with the deformed targets put right",
            id="same_predictions",
            **zero("outputs_bent", "network_bent"),
        )
        yield kit.rival(
            "in the span nothing changes",
            "the linear model fits the targets themselves",
            **zero("deformed", "inside"),
        )
        yield kit.rival(
            "Y^I = −θ^FᵀFθ^F",
            "the factor ½ of the quadratic term is forgotten",
            deformed=2 * law.deformed,
        )
        yield kit.rival(
            "in the span θ^I_t = (I − e^{−tΦΦᵀ}) θ^I",
            "as a linear model on deformed targets would",
            middle_inside=("seed parameter", self.approach(models, law.inside.values)),
        )
        yield kit.rival(
            "θ^F is the interpolant of least norm",
            "what a start at zero finds",
            linear=("seed parameter", law.linear.values - off_the_span(models)),
        )
        yield kit.rival(
            "test outputs of networks stay at their start",
            "the null: outputs at the test inputs stay",
            **zero("network"),
        )

    def approach(self, models: Models, inside: Values) -> Values:
        """Return (I − e^{−tΦΦᵀ}) θ^I in the span at the time in the middle, ``(seeds, p)``."""
        u, s, _ = np.linalg.svd(models.phi[..., : self.examples], full_matrices=False)
        share = -np.expm1(-(s**2) * self.middle)
        return np.einsum("spj,sj,sqj,sq->sp", u, share, u, inside)

    def controls(self, seen):
        of_models = ("middle", "end", "fitted", "drift", "outputs")
        rolled = {name: seen[name].roll(seed=1) for name in of_models}
        weighted = {name: seen[f"weighted_{name}"] for name in (*of_models, "network")}
        yield kit.control(
            "every second example counts twice in the loss",
            "the path decides what moves off the span",
            **weighted,
        )
        yield kit.control(
            "what another model or network has learned",
            "each model has its own features and quadratic forms",
            network=seen.network.roll(draw=1),
            **rolled,
        )

    def figure(self, law, seen, rivals):
        epsilon = np.array(self.epsilon)
        small = 1 / np.array(self.scales)
        wrong = law.assign(
            outside=0 * law.outside, drift=-law["drift"], network_outside=0 * law.network_outside
        )
        other = self.remainders(wrong, seen)
        mean = lambda left: np.exp(np.log(left).mean(left.dims[0])).values
        line = lambda x, y, power: y[-1] * (x / x[-1]) ** power
        linear = mean(seen.left_linear)
        parameters = mean(seen.left_parameters)
        drift = mean(seen.left_drift)
        outputs = mean(seen.left_network)
        points = {"kind": "points"}
        yield kit.panel(
            "Parameters: the remainder is of second order",
            "ε",
            "distance from θ_∞",
            kit.observed_curve(epsilon, linear, "θ^F", **points),
            kit.observed_curve(epsilon, parameters, "θ^F + εθ^I", shade=0.5, **points),
            kit.rival_curve(epsilon, mean(other["parameters"]), "without θ^I off the span"),
            kit.predicted_curve(epsilon, line(epsilon, linear, 1), "∝ ε, ∝ ε²"),
            kit.predicted_curve(epsilon, line(epsilon, parameters, 2)),
            log="xy",
        )
        yield kit.panel(
            "Features drift as predicted",
            "ε",
            "drift − prediction",
            kit.observed_curve(epsilon, drift, "εF(θ^F − θ₀)", **points),
            kit.rival_curve(epsilon, mean(other["drift"]), "printed sign"),
            kit.predicted_curve(epsilon, line(epsilon, drift, 2), "∝ ε²"),
            log="xy",
        )
        yield kit.panel(
            "Networks on digits: the same, with 1/α for ε",
            "1/α",
            "test outputs − prediction",
            kit.observed_curve(small, mean(seen.left_network_linear), "linear model", **points),
            kit.observed_curve(small, outputs, "first order", shade=0.5, **points),
            kit.rival_curve(small, mean(other["network"]), "without θ^I off the span"),
            kit.predicted_curve(small, line(small, outputs, 2), "∝ 1/α²"),
            log="xy",
        )


def off_the_span(models: Models) -> Values:
    """Return the part of the start outside of the span of the training features, ``(seeds, p)``."""
    m = models.y.shape[1]
    basis = np.linalg.svd(models.phi[..., :m], full_matrices=False)[0]
    return models.start - np.einsum("spj,sqj,sq->sp", basis, basis, models.start)


def printed_outside(models: Models) -> Values:
    """Return θ^I off the span as its printed rate integrates, shape ``(seeds, p)``.

    The rate is ``−P_⊥ Σ F_α (I − e^{−tΦΦᵀ})(θ_0 − θ^F) r_t(α)``.
    """
    m = models.y.shape[1]
    ends = []
    for phi, forms, y, start in zip(*models, strict=True):
        u, s, vt = np.linalg.svd(phi[:, :m], full_matrices=False)
        b = vt @ (phi[:, :m].T @ start - y)
        times = 1 / s**2 - 1 / (s[:, None] ** 2 + s**2)  # ∫ (1 − e^{−s_j² t}) e^{−s_k² t} dt
        inner = np.einsum("pj,j,jk,ka,k->ap", u, b / s, times, vt, b)
        away = -np.einsum("apq,aq->p", forms[:m], inner)
        ends.append(away - u @ (u.T @ away))
    return np.array(ends)
