"""With weight decay λ, SGD comes to turn scale-invariant weights by the angle √(2ηλ) in each step.

The angle is √(2ηλ/(1+β)) with momentum, and √(2ηλ(1−β₁)/(1+β₁)) in AdamW. A weight is scale-invariant if its length
does not matter, as in front of a normalization. Gradients lengthen such a weight and decay shortens it, until the two
balance. From then on the weight's direction turns by an angle that depends only on the step size η, the decay λ and the
momentum, whatever the size of the gradients.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.rotational_equilibrium import experiment, theory
from steepest.claims.training.rotational_equilibrium.experiment import Optimizer, Turns
from steepest.claims.training.rotational_equilibrium.point import RotationalEquilibriumPoint
from steepest.claims.training.rotational_equilibrium.theory import Balance

OPTIMIZERS = ("sgd", "momentum", "adamw")
BETA2 = 0.99
SHORTEST = 6.0  # steps in units of the time in which norms relax


@kit.claim
class RotationalEquilibrium(kit.Claim[None]):
    """SGD, momentum and AdamW with weight decay: on gradients of pure noise, and on digits with a normalized layer."""

    decays: tuple[kit.Positive, ...] = kit.param(
        (0.004, 0.008, 0.016),
        "ηλ",
        scope=kit.choices((0.004, 0.008, 0.016), (0.004, 0.012), (0.005, 0.01, 0.02)),
    )
    sizes: tuple[kit.Positive, ...] = kit.param(
        (0.3, 3.0), "sizes of the noise", scope=kit.choices((0.3, 3.0), (0.1, 1.0), (1.0, 10.0))
    )
    beta: kit.Fraction = kit.param(0.9, "β and β₁", scope=kit.between(0.8, 0.92))
    weights: kit.Count = kit.param(
        200, "n on noise", unit="weights", scope=kit.between(150, 300, "in n the law is off by 1/n")
    )
    batch: kit.Count = kit.param(
        8,
        "digits in a batch",
        unit="images",
        scope=kit.between(4, 12, "larger ones are less noisy"),
    )
    steps: kit.Count = kit.param(1500, "steps of each training", unit="steps")
    networks: kit.Count = kit.param(6, "networks on digits, of each kind")
    seeds: kit.Seeds = kit.param(8, "weights on noise, of each kind")

    kind = "limit"
    says = {
        "by the angle √(2ηλ) in each step": (
            kit.literal("angle", power={"decay": 0.5}, at={"optimizer": "sgd"}),
            kit.literal("digits", power={"decay": 0.5}, at={"optimizer": "sgd"}),
        ),
        "√(2ηλ/(1+β)) with momentum": ("angle", "digits"),
        "√(2ηλ(1−β₁)/(1+β₁)) in AdamW": ("angle", "digits"),
    }
    tiny = {
        "decays": (0.02, 0.03),
        "sizes": (0.5, 2.0),
        "weights": 20,
        "steps": 1200,
        "networks": 2,
        "seeds": 3,
    }
    full = {"steps": 20_000, "weights": 1000}
    out_of_scope = {"decays": (0.0001, 0.01)}
    precision = "float32"
    point = RotationalEquilibriumPoint

    @property
    def rates(self) -> tuple[float, float, float]:
        """Return η of each optimizer on noise."""
        return (0.1, 0.1 * (1 - self.beta), 0.01)

    @property
    def balances(self) -> tuple[Balance, Balance, Balance]:
        """Return the law of each optimizer."""
        decay = np.array(self.decays)
        return (
            theory.momentum(decay, 0.0),
            theory.momentum(decay, self.beta),
            theory.adamw(decay, self.beta),
        )

    def axes(self):
        return {"optimizer": OPTIMIZERS, "decay": self.decays, "size": self.sizes}

    def rules(self, rates: tuple[float, float, float]) -> list[Optimizer]:
        """Return each optimizer as it is run."""
        return [
            experiment.descent(rates[0], 0.0),
            experiment.descent(rates[1], self.beta),
            experiment.adamw(rates[2], self.beta, BETA2),
        ]

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        slowest = 1 / (2 * min(self.decays))
        yield kit.assume(
            "half of the steps, in units of 1/2ηλ",
            self.steps / 2 / slowest,
            ">=",
            SHORTEST,
            "norms must have come to balance: raise --steps",
        )
        yield kit.assume(
            "half of the steps, in units of 1/(1 − β₂)",
            self.steps / 2 * (1 - BETA2),
            ">=",
            SHORTEST,
            "v must have forgotten its start: raise --steps",
        )
        yield kit.assume("largest ηλ", max(self.decays), "<=", 0.03, "the law is of small steps")

    def predict(self, setting):
        balances = self.balances
        angles = np.stack([balance.angle for balance in balances])
        # the part of the noise at right angles to w has n − 1 of its n coordinates
        c = np.array(self.sizes) * (self.weights - 1) ** 0.5
        squares = [
            theory.square_of_descent(balance, eta, 1.0)[:, None] * c
            for balance, eta in zip(balances[:2], self.rates, strict=False)
        ]
        of_adamw = theory.square_of_adamw(balances[2], self.rates[2], self.beta, self.weights)
        squares.append(of_adamw[:, None] + 0 * c)
        shape = (len(OPTIMIZERS), len(self.decays), len(self.sizes))
        return kit.law(
            angle=("optimizer decay size", np.broadcast_to(angles[..., None], shape)),
            square=("optimizer decay size", np.stack(squares)),
            digits=("optimizer decay", angles),
        )

    def observe(self, setting, key):
        measured = kit.compiled(
            lambda of_noise, of_digits: (self.on_noise(of_noise), self.in_networks(of_digits))
        )(*kit.keys(key, 2))
        noise, networks = jax.tree.map(lambda values: np.asarray(values, float), measured)
        # the last decay is none
        decayed = lambda values: np.stack(values, 1)[:, :, :-1]
        undecayed = lambda values: np.repeat(
            np.stack(values, 1)[:, :, -1:], len(self.decays), axis=2
        )
        angles = [turns.angle for turns in noise]
        squares = [turns.square for turns in noise]
        lanes = "seed optimizer decay size"
        return kit.seen(
            angle=(lanes, decayed(angles)),
            square=(lanes, decayed(squares)),
            undecayed_angle=(lanes, undecayed(angles)),
            undecayed_square=(lanes, undecayed(squares)),
            digits=("start optimizer decay", np.stack(networks, 1)[:, :, 1]),
            plain_digits=("start optimizer decay", np.stack(networks, 1)[:, :, 0]),
        )

    def on_noise(self, key: jax.Array) -> list[Turns]:
        """Return turns under each optimizer, arrays ``(seeds, decays and none, sizes)``."""
        decays = jnp.asarray([*self.decays, 0.0])
        sizes = jnp.asarray(self.sizes)

        def of_rule(rule: Optimizer, eta: float) -> Turns:
            def lane(key: jax.Array, decay: jax.Array, size: jax.Array) -> Turns:
                optimizer = rule(decay / eta)
                # noise of its own for each
                key = jax.random.fold_in(key, (1e6 * decay * size).astype(int))
                return experiment.on_noise(key, optimizer, size, self.weights, self.steps)

            over_sizes = jax.vmap(lane, (None, None, 0))
            over_decays = jax.vmap(over_sizes, (None, 0, None))
            over_seeds = jax.vmap(over_decays, (0, None, None))
            return over_seeds(jax.random.split(key, self.seeds), decays, sizes)

        rules = self.rules(self.rates)
        return [of_rule(rule, eta) for rule, eta in zip(rules, self.rates, strict=True)]

    def in_networks(self, key: jax.Array) -> list[jax.Array]:
        """Return angles under each optimizer without and with normalization, ``(networks, 2, decays)``."""
        rates = (0.1, 0.1 * (1 - self.beta), 0.003)
        shown = experiment.images()

        def of_rule(rule: Optimizer, eta: float) -> jax.Array:
            def lane(key: jax.Array, normalized: jax.Array, decay: jax.Array) -> jax.Array:
                rules = (rule(decay / eta), rule(0.0))
                return experiment.in_network(key, rules, shown, self.batch, self.steps, normalized)

            over_decays = jax.vmap(lane, (None, None, 0))
            over_both = jax.vmap(over_decays, (None, 0, None))
            over_keys = jax.vmap(over_both, (0, None, None))
            keys = jax.random.split(key, self.networks)
            return over_keys(keys, jnp.array([False, True]), jnp.asarray(self.decays))

        return [of_rule(rule, eta) for rule, eta in zip(self.rules(rates), rates, strict=True)]

    def judge(self, law, seen):
        yield kit.follows(
            "angle",
            law.angle,
            seen.angle,
            0.02,  # AdamW's v varies, which takes half a percent
            label="noise: angle that a weight turns by in a step",
        )
        yield kit.follows(
            "square",
            law.square,
            seen.square,
            0.05,  # AdamW's v varies, which takes 1 %, and the interval 2 %
            label="noise: square of the norm",
        )
        yield kit.follows(
            "digits",
            law.digits,
            seen.digits,
            0.15,  # gradients of successive steps agree in part, by up to 0.1
            label="digits: angle that the first weights turn by in a step",
        )

    def rivals(self, setting, law):
        beta = self.beta
        factors_of = lambda *factors: xarray.DataArray(
            list(factors), {"optimizer": law.optimizer}, ("optimizer",)
        )
        times = lambda factors: {"angle": law.angle * factors, "digits": law.digits * factors}
        middle = float(np.exp(np.log(self.sizes).mean()))
        yield kit.rival(
            "√(ηλ) for √(2ηλ)",
            "the square of the norm shrinks by ηλ",
            id="half",
            **times(factors_of(*(3 * [2**-0.5]))),
        )
        yield kit.rival(
            "√(2ηλ) for all three",
            "momentum is a larger step size",
            id="no_momentum",
            **times(factors_of(1.0, (1 + beta) ** 0.5, ((1 + beta) / (1 - beta)) ** 0.5)),
        )
        yield kit.rival(
            "√(2ηλ(1 − β₁)) under AdamW",
            "a new gradient has this weight in m",
            **times(factors_of(1.0, 1.0, (1 + beta) ** 0.5)),
        )
        yield kit.rival(
            "the angle grows with the size of gradients",
            "larger gradients turn a weight more",
            angle=law.angle * (law["size"] / middle) ** 0.5,
        )
        yield kit.rival(
            "the angle is ∝ ηλ",
            "decay of w is felt only through the step size",
            angle=law.angle * (law.decay / float(np.mean(self.decays))) ** 0.5,
            digits=law.digits * (law.decay / float(np.mean(self.decays))) ** 0.5,
        )

    def controls(self, seen):
        yield kit.control(
            "λ = 0",
            "nothing shortens the weight, and it turns ever less",
            id="no_decay",
            angle=seen.undecayed_angle,
            square=seen.undecayed_square,
        )
        yield kit.control(
            "first rows that are not divided by their lengths",
            "gradients have a part along the weight",
            digits=seen.plain_digits,
        )

    def figure(self, law, seen, rivals):
        first = {"size": float(self.sizes[0])}
        yield kit.curves(
            "Noise: the angle knows only ηλ and momentum",
            law.angle.sel(first, drop=True),
            seen.angle.sel(first, drop=True),
            over="decay",
            by="optimizer",
            x="ηλ",
            y="angle a step [radians]",
            log="xy",
        )
        yield kit.curves(
            "The same for gradients of any size (SGD)",
            law.angle.sel(optimizer="sgd", drop=True),
            seen.angle.sel(optimizer="sgd", drop=True),
            over="decay",
            by="size",
            x="ηλ",
            y="angle a step [radians]",
            name="noise {}",
            log="xy",
        )
        yield kit.curves(
            "Digits: normalized first layer",
            law.digits,
            seen.digits,
            over="decay",
            by="optimizer",
            x="ηλ",
            y="angle a step [radians]",
            log="xy",
        )
