"""At output scale 1/N, one-pass SGD with step size ε adds an error of order √ε to the width's error.

Wide networks follow a limit flow. At step ε of one-pass SGD their error is the noise of the steps, which draw one
example each. At width N it is the fluctuation of the start. The squared errors add up, each with its own constant.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.stats import gmean

from steepest import kit
from steepest.claims.features._mean_field import (
    BATCH,
    MARGIN,
    MEAN,
    Networks,
    OnCircle,
    Setting,
    draw_networks,
    follow_flow,
    outputs_of,
    risk_of,
)
from steepest.claims.features.mean_field_steps.point import MeanFieldPoint
from steepest.dynamics import descend

MOST_STEPS = 10**5


@kit.claim
class MeanFieldSteps(OnCircle):
    """Tanh networks of two inputs, trained by gradient flow and by one-pass SGD on a few examples on a circle."""

    rates: tuple[kit.Positive, ...] = kit.param(
        (0.02, 0.05, 0.1),
        "ε of one-pass SGD",
        scope=kit.choices(
            (0.02, 0.05, 0.1), (0.0125, 0.05, 0.1), why="above the next order in ε is seen"
        ),
    )

    kind = "limit"
    says = {
        "adds an error of order √ε": ("noise", "step_exponent"),
        "The squared errors add up, each with its own constant": "both",
    }
    tiny = {
        "widths": (150, 300),
        "times": (0.5, 1.0),
        "rates": (0.1, 0.25),
        "examples": 4,
        "seeds": 3,
        "starts": 2,
    }
    full = {"widths": (60, 180, 540, 1620), "rates": (0.01, 0.02, 0.05, 0.1), "starts": 80}
    out_of_scope = {"rates": (0.5, 0.25), "times": (0.5, 1.0), "starts": 2}
    point = MeanFieldPoint

    def axes(self):
        return {**super().axes(), "rate": self.rates}

    def check_fields(self) -> None:
        """Refuse steps that do not end at the times, and too many of them."""
        super().check_fields()
        if self.times[-1] / min(self.rates) > MOST_STEPS:
            raise kit.UserError(
                f"--times {self.times[-1]:g} takes more than {MOST_STEPS} steps of {min(self.rates):g}; raise --rates"
            )
        steps = np.divide.outer(self.times, self.rates)
        if np.abs(steps - steps.round()).max() > 1e-6:
            raise kit.UserError(
                f"every time must be a whole number of steps of each rate, got --times {self.times} and --rates "
                f"{self.rates}"
            )

    def hypotheses(self, setting):
        yield from super().hypotheses(setting)
        yield kit.assume(
            "largest ε‖x‖²",
            max(self.rates) * self.radius**2,
            "<=",
            0.5,
            "the law is for ε → 0; lower --rates",
        )

    def predict(self, setting):
        limit = self.limit(setting)
        square = limit.start / np.array(self.widths)[:, None]
        noise = limit.noise * np.array(self.rates)[:, None]
        return kit.law(
            limit=("time example", limit.outputs),
            noise=("rate time", noise),
            # start and draws are independent, and squares add up
            both=("width rate time", square[:, None] + noise),
        )

    def observe(self, setting, key):
        """Train every start by gradient flow and by SGD, and the first of each group by descent on all examples."""

        def every(keys: kit.Key, data: Setting) -> tuple[jax.Array, ...]:
            over = partial(jax.lax.map, batch_size=BATCH)
            times = np.array(self.times)
            follow = lambda key: follow_flow(key, MEAN, data, self.widths, times)["outputs"]
            return (
                over(follow, keys.ravel()),
                over(lambda key: self.descend(key, data, drawn=True), keys.ravel()),
                over(lambda key: self.descend(key, data, drawn=False), keys[:, 0]),
            )

        keys = kit.keys(key, self.seeds * self.starts).reshape(self.seeds, self.starts)
        flows, steps, whole = map(np.asarray, kit.compiled(every)(keys, setting))
        of_starts = lambda values: values.reshape(*keys.shape, *values.shape[1:])
        return kit.seen(
            flows=("seed start time width example", of_starts(flows)),
            sgd=("seed start rate time width example", of_starts(steps)),
            whole=("seed rate time width example", whole),
        )

    def descend(self, key: kit.Key, data: Setting, *, drawn: bool) -> jax.Array:
        """Descend from the start of the flow at every rate, with drawn examples or with all, (rates, times, …)."""
        ends = []
        for i, lr in enumerate(self.rates):
            at = np.round(np.array(self.times) / lr).astype(int)
            path = descend(
                partial(risk_of, data=data),
                draw_networks(key, self.widths),
                optax.sgd(lr),
                int(at[-1]),
                record=at,
                observe={"outputs": partial(outputs_of, data=data)},
                stochastic=partial(risk_of_draws, data=data) if drawn else None,
                key=jax.random.fold_in(key, i),
            )
            ends.append(path.observed["outputs"])
        return jnp.stack(ends)

    def derive(self, law, seen):
        """Return squared distances of SGD from the limit, and from the flow of the same start at the largest width."""
        square = lambda values: (values**2).mean("example", skipna=False)
        noises = square(seen.sgd - seen.flows)
        widest = int(np.argmax(self.widths))
        return {"boths": square(seen.sgd - law.limit), "noises": noises.isel(width=widest)}

    def judge(self, law, seen):
        yield kit.follows(
            "noise",
            law.noise,
            seen.noises,
            MARGIN,
            label="squared distance of SGD from gradient flow of the same start, largest width",
        )
        yield kit.power(
            "step_exponent",
            law.noise.isel(time=-1) ** 0.5,
            seen.noises.isel(time=-1).mean("start", skipna=False) ** 0.5,
            0.06,  # twice the interval
            over="rate",
            label="distance of SGD from gradient flow against ε, last time, largest width",
        )
        yield kit.follows(
            "both", law.both, seen.boths, MARGIN, label="squared distance of SGD from the limit"
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "distance ∝ ε",
            "only discretization: descent without noise",
            id="linear_in_step",
            noise=law.noise * law.rate / gmean(law.rate),
        )
        yield kit.rival(
            "only the larger of both errors",
            "the talk's √max(1/N, ε): the smaller error is hidden",
            both=np.maximum(law.both - law.noise, law.noise),
        )
        yield kit.rival(
            "width and step have one constant",
            "√max(1/N, ε) with one constant",
            noise=("rate time", np.multiply.outer(self.rates, self.limit(setting).start)),
        )
        yield kit.rival(
            "V = E[yσ]",
            "as printed in the notes of the talk: networks of tanh go to the negative of their target",
            limit=-law.limit,
        )

    def controls(self, seen):
        yield kit.control(
            "descent on all examples at every step, the first of each group",
            "descent has no noise, so that it is off its flow only by the length of its steps",
            id="whole_population",
            sgd=seen.whole,
            flows=seen.flows.isel(start=0, drop=True),
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "One-pass SGD: the squared distance grows like ε",
            law.noise,
            seen.noises,
            over="rate",
            by="time",
            x="step ε",
            y="squared distance from the flow of the same start",
            name="t = {}",
            rivals={"ε²": rivals["linear_in_step"].noise.isel(time=-1)} if rivals else {},
            log="xy",
        )


def risk_of_draws(networks: Networks, key: kit.Key, data: Setting) -> jax.Array:
    """Return the risks of one example for each network, drawn anew, summed over networks."""
    drawn = jax.random.randint(key, (len(networks),), 0, len(data.y))
    risks = [
        risk_of((w,), Setting(data.x[i][None], data.y[i]))
        for w, i in zip(networks, drawn, strict=True)
    ]
    return jnp.stack(risks).sum()
