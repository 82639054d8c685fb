"""Distances to any reference move as gradients say, exactly; the term that textbooks delete bounds how far weights go.

Expand ‖W_{t+1} − W̄‖² and sum over the steps: for any risk, any step size and any reference W̄ there is an identity,
without convexity. For networks that are homogeneous in the trained layer each inner product is a difference of two
risks, as if the risk were convex, provided that W̄ is judged by the features of the current step. The two together
keep all weights near every reference that fits on the features along the way.
"""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.optimize import minimize_scalar

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Within,
    agreement,
    assume,
    bound,
    compiled,
    context_curve,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.dynamics import descend, telescope
from steepest.nn.data import digits, signs
from steepest.nn.losses import logistic

ROUNDING = 1e-10  # of sums over hundreds of steps, relative to their largest term
REFERENCES = (
    "8 downhill from the start",
    "8 from the start, at random",
    "after one step",
    "after ten steps",
    "the end",
    "trained on the start's features",
)
FROZEN = 5  # the last of them
FROZEN_LR = 4.0  # of the training on frozen features, whose risk has curvature ¼ at most

DIMS = {
    "left": "seed step_size reference step",
    "inner": "seed step_size reference step",
    "squares": "seed step_size reference step",
    "risk": "seed step_size reading",
    "reference_risk": "seed step_size reference reading",
    "distance": "seed step_size reference",
}


class Setting(NamedTuple):
    """Unit inputs ``(n, d)``, labels ±1 ``(n,)`` and one key a network."""

    x: np.ndarray
    y: np.ndarray
    keys: Key


@dataclass(frozen=True)
class DescentTelescope(Claim):
    """Two-layer networks on two digits with the inner layer trained, at two step sizes, and logistic regression."""

    lr: Positive = 1.0  # η, the smaller step size [1/sharpness]
    ratio: Positive = 4.0  # the larger step size over the smaller one [1]
    steps: Count = 300  # T [steps]
    width: Count = 64  # hidden neurons [neurons]
    n: Count = 60  # images [1]
    seeds: Seeds = 3  # initial networks [1]
    # of logistic regression: the largest step size of the theorem, 1/β, over the step size taken [1]
    slowdown: Annotated[float, Within(1)] = 100.0

    kind = "theorem"
    # 1 judged the inequality of features network by network, which a control fails only if all of its networks do
    version = 2
    statement = (
        r"\|W_T-\bar W\|^2-\|W_0-\bar W\|^2=-2\eta\sum_{t<T}\langle\nabla R(W_t),W_t-\bar W\rangle"
        r"+\eta^2\sum_{t<T}\|\nabla R(W_t)\|^2,\qquad \|W_T-\bar W\|^2+(2-c\eta)\,\eta\sum_{t<T}R(W_t)\le"
        r"\|W_0-\bar W\|^2+2\eta\sum_{t<T}R^{(t)}(\bar W)"
    )
    headline = ("identity", "moving_features", "motion_0", "motion_1")
    source = "Last ten minutes of the talk [@telgarsky2024]; [@ji2020a]"
    remarks = (
        "The identity is algebra: only a wrong formula or a bug can fail it, and its rivals are wrong formulas.",
        "R^{(t)}(W̄) is the risk of W̄ on the features at step t: the network linearized at W_t, which is homogeneous in "
        "W, evaluated at W̄. Its inequality ⟨∇R(W_t), W_t − W̄⟩ ≥ R(W_t) − R^{(t)}(W̄) needs a convex loss and "
        "⟨∇f(W), W⟩ = f(W), which a tanh layer does not have.",
        "The constant c = max_u σ(−u)²/log(1 + e^{−u}) = 0.408 is ours. As ‖∇f‖ ≤ ‖x‖ ≤ 1 here, ‖∇R‖² ≤ c R, and "
        "the inequality bounds something for every η below 2/c = 4.9. The cruder ‖∇R‖² ≤ R gives 2 − η for 2 − cη.",
        "The flow has the same identity without the last term and 2 in place of 2 − cη. For steps both are refuted, by "
        "the reference that descent reaches after one step.",
        "None of this says that descent converges: Σ R^{(t)}(W̄) may grow with T. The left figure shows how much of the "
        "bound on the distance is used.",
        "In the convex case, logistic regression with η ≤ 1/β, the same telescope gives R(W_T) ≤ R(W̄) + "
        "(‖W_0 − W̄‖² − ‖W_T − W̄‖²)/(2ηT). With the second term kept the 2 cannot be improved: references farther down "
        "a slow descent, where the risk is almost linear, nearly attain it. Without that term 4ηT is the sharpest.",
        "Each run draws its images anew; the networks of one run share them.",
        "Version 1 took the worst step of each network in place of the worst of all; on 15 of 20 fresh seeds one of "
        "the three tanh networks did not violate the inequality, which left the check without power.",
    )
    tiny = {"steps": 30, "width": 8, "n": 20}
    full = {"steps": 2000, "width": 512, "n": 200, "seeds": 8}
    out_of_scope = {"ratio": 10.0}

    @property
    def step_sizes(self) -> tuple[float, float]:
        """Return the two step sizes."""
        return self.lr, self.lr * self.ratio

    def setting(self, key: Key) -> Setting:
        for_images, for_networks = keys(key, 2)
        data = signs(digits(classes=(3, 8), n=self.n, key=for_images))
        x = np.asarray(data.x)
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        return Setting(unit, np.asarray(data.y), keys(for_networks, self.seeds))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        lengths = np.linalg.norm(setting.x, axis=1)
        return [
            assume("largest ‖x‖", lengths.max(), "<=", 1 + 1e-12, "features must not exceed one"),
            assume("largest η", max(self.step_sizes), "<", 2 / _slope_constant(), "lower --ratio"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(
            inner=2.0,
            squares=1.0,
            motion=("step_size", 2 - _slope_constant() * np.array(self.step_sizes)),
            convex=2.0,
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        signs_out = np.where(np.arange(self.width) % 2, -1.0, 1.0) / np.sqrt(self.width)
        x = setting.x
        y = setting.y
        labels = jnp.asarray(y)
        late = min(10, self.steps)

        def network(w: jax.Array, smooth: jax.Array) -> jax.Array:
            """Return the outputs of one network, of tanh neurons where ``smooth`` and of ReLUs elsewhere."""
            before = x @ w.T
            return jnp.where(smooth, jnp.tanh(before), jax.nn.relu(before)) @ signs_out

        def follow(seed: Key) -> dict[str, jax.Array]:
            for_start, for_reference = jax.random.split(seed)
            start = jax.random.normal(for_start, (self.width, x.shape[1]))
            aside = jax.random.normal(for_reference, start.shape)
            active = x @ start.T > 0

            def on_first_features(w: jax.Array) -> jax.Array:
                return logistic(labels * ((active * (x @ w.T)) @ signs_out)).mean()

            fitted = descend(
                on_first_features, start, optax.sgd(FROZEN_LR), self.steps, record=self.steps
            ).params

            def lane(choice: tuple[jax.Array, jax.Array]) -> dict[str, jax.Array]:
                lr, smooth = choice
                risk = lambda w: logistic(labels * network(w, smooth)).mean()
                path = descend(risk, start, optax.sgd(lr), self.steps, observe={"w": lambda w: w})
                points = path.observed["w"]
                downhill = start - points[1]
                references = jnp.stack(
                    [
                        start - 8 * downhill / jnp.linalg.norm(downhill),
                        start + 8 * aside / jnp.linalg.norm(aside),
                        points[1],
                        points[late],
                        points[-1],
                        fitted,
                    ]
                )
                sums = jax.vmap(lambda reference: telescope(risk, points, reference))(references)

                def linearized(point: jax.Array) -> jax.Array:
                    """Return the risks of all references on the features at one point, ``(references,)``."""
                    tangent = jax.linearize(lambda w: network(w, smooth), point)[1]
                    return jax.vmap(lambda w: logistic(labels * tangent(w)).mean())(references)

                return {
                    "left": sums.left,
                    "inner": sums.inner,
                    "squares": sums.squares,
                    "risk": path.risk,
                    "reference_risk": jax.lax.map(linearized, points).T,
                    "distance": ((start - references) ** 2).sum((1, 2)),
                }

            small, large = self.step_sizes
            lanes = (
                jnp.array([small, large, small, large]),
                jnp.array([False, False, True, True]),
            )
            return jax.lax.map(lane, lanes)

        every = compiled(lambda seeds: jax.lax.map(follow, seeds))(setting.keys)
        every = {name: np.asarray(values) for name, values in every.items()}
        of_relu = {name: (where, every[name][:, :2]) for name, where in DIMS.items()}
        of_tanh = {f"tanh_{name}": (where, every[name][:, 2:]) for name, where in DIMS.items()}
        return Observation(
            **of_relu,
            **of_tanh,
            convex=("reference_step", self.regression(x, y)),
        )

    def regression(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Descend on logistic regression with η ≤ 1/β, and compare with references W̄ on its own path.

        Returns:
            For W̄ after 2, …, T steps the smallest (‖W_0 − W̄‖² − ‖W_t − W̄‖²)/(ηt (R(W_t) − R(W̄))) over the t before
            it, shape ``(T − 1,)``.
        """
        z = y[:, None] * x
        lr = 4 / np.linalg.eigvalsh(z.T @ z / len(z))[-1] / self.slowdown
        points = [np.zeros(x.shape[1])]
        for _ in range(self.steps):
            points.append(points[-1] + lr * (z / (1 + np.exp(z @ points[-1]))[:, None]).mean(0))
        path = np.array(points)
        risk = np.logaddexp(0, -path @ z.T).mean(1)
        squares = (path**2).sum(1)
        distance = squares[:, None] + squares - 2 * path @ path.T
        t = np.arange(1, self.steps + 1)[:, None]
        gained = distance[:1] - distance[1:]
        lower = risk[1:, None] - risk
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(t < np.arange(self.steps + 1), gained / (lr * t * lower), np.inf)
        return ratio.min(0)[2:]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        lr = np.array(self.step_sizes)[:, None, None]
        inner = predicted["inner"] * lr * observed["inner"]
        squares = predicted["squares"] * lr**2 * observed["squares"]
        defect = np.abs(observed["left"] + inner - squares)
        largest = np.abs(observed["left"]) + np.abs(inner)
        slack = _slack(observed)
        motion = self.motion(observed)
        return [
            agreement(
                "identity",
                (defect / largest).max((1, 2, 3)),
                ROUNDING,
                label="change of distance − sums of the gradients, relative",
            ),
            agreement(
                "moving_features",
                max(-slack.min(), 0.0),
                ROUNDING,
                label="R(W_t) − R⁽ᵗ⁾(W̄) above ⟨∇R(W_t), W_t − W̄⟩, worst of all",
            ),
            *(
                bound(
                    f"motion_{i}",
                    motion[:, i],
                    # 2 − cη is what holds for all data; these gradients are far from the worst case
                    at_least=float(predicted["motion"][i]),
                    aggregate="all",
                    label=f"largest a in ‖W_T − W̄‖² + aηΣR ≤ ‖W_0 − W̄‖² + 2ηΣR⁽ᵗ⁾(W̄), η = {size:g}",
                )
                for i, size in enumerate(self.step_sizes)
            ),
            bound(
                "convex",
                observed["convex"].min(),
                at_least=float(predicted["convex"]),
                label="least (‖W_0 − W̄‖² − ‖W_T − W̄‖²)/(ηT (R(W_T) − R(W̄))), logistic regression",
            ),
        ]

    def motion(self, observed: Observation) -> np.ndarray:
        """Return the largest a for which ‖W_T − W̄‖² + aη Σ R ≤ ‖W_0 − W̄‖² + 2η Σ R⁽ᵗ⁾(W̄) at all T and W̄.

        The shape is ``(seeds, step sizes)``.
        """
        lr = np.array(self.step_sizes)[:, None, None]
        ahead = 2 * lr * np.cumsum(observed["reference_risk"][..., :-1], -1) - observed["left"]
        spent = lr * np.cumsum(observed["risk"][:, :, None, :-1], -1)
        return (ahead / spent).min((2, 3))

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        flow = predicted.replace(
            squares=0.0, motion=("step_size", np.full(len(self.step_sizes), 2.0))
        )
        return [
            Rival(
                "flow",
                flow,
                "the flow's identity has no squares, and small steps follow the flow",
                label="the identity of gradient flow holds for steps",
            ),
            Rival(
                "half",
                predicted.replace(inner=1.0),
                "the square's cross term comes twice",
                label="⟨∇R, W − W̄⟩ enters once",
            ),
            Rival(
                "sharpest",
                predicted.replace(convex=4.0),
                "of all bounds by ‖W_0 − W̄‖² alone, 1/(4ηT) is the sharpest",
                label="the convex bound with 4ηT and the term kept",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        first = np.broadcast_to(
            observed["reference_risk"][..., :1], observed["reference_risk"].shape
        )
        tanh = {name: (dims, observed[f"tanh_{name}"]) for name, dims in DIMS.items()}
        return [
            Control(
                "frozen",
                observed.replace(reference_risk=("seed step_size reference reading", first)),
                "features move, and a reference that fits on the first need not fit on later ones",
                label="references judged by the features at the start",
            ),
            Control(
                "tanh",
                observed.replace(**tanh),
                "⟨∇f(W), W⟩ is not f(W)",
                label="a layer of tanh neurons",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        lr = self.lr
        step = np.arange(1, self.steps + 1)
        distance = observed["distance"][0, 0, FROZEN] + observed["left"][0, 0, FROZEN]
        fit = np.cumsum(observed["reference_risk"][0, 0, FROZEN, :-1])
        spent = np.cumsum(observed["risk"][0, 0, :-1])
        textbook = observed["distance"][0, 0, FROZEN] + 2 * lr * fit
        kept = textbook - predicted["motion"][0] * lr * spent
        left = observed["left"][0, 0, FROZEN]
        inner = 2 * lr * observed["inner"][0, 0, FROZEN]
        squares = lr**2 * observed["squares"][0, 0, FROZEN]
        moving = _slack(observed)[0, 0, FROZEN]
        frozen = moving + (
            observed["reference_risk"][0, 0, FROZEN, :1]
            - observed["reference_risk"][0, 0, FROZEN, :-1]
        )
        tanh = _slack(observed, "tanh_")[0, 0, 1]
        return (
            panel(
                "Weights stay near what fits along the way",
                "step",
                "‖W_t − W̄‖², W̄ " + REFERENCES[FROZEN],
                observed_curve(step, distance, "measured"),
                predicted_curve(step, kept, "bound"),
            ),
            panel(
                "The identity needs the squares",
                "step",
                "change of distance − sums, relative",
                observed_curve(
                    step,
                    np.maximum(
                        np.abs(left + inner - squares) / (np.abs(left) + np.abs(inner)), 1e-17
                    ),
                    "with squares",
                ),
                rival_curve(
                    step,
                    np.abs(left + inner) / (np.abs(left) + np.abs(inner)),
                    "without (the flow's)",
                ),
                log="y",
            ),
            panel(
                "As if convex, on the features of each step",
                "step",
                "⟨∇R, W − W̄⟩ − (R(W) − R(W̄))",
                observed_curve(step, moving, "features of the step"),
                rival_curve(step, frozen, "features of the start"),
                context_curve(step, tanh, "tanh, random W̄"),
                predicted_curve((1, self.steps), (0, 0), "at least 0"),
            ),
            panel(
                "Convex: distance gained / (η t × risk above W̄)",
                "reference W̄: step of the same descent",
                "smallest over earlier t",
                observed_curve(np.arange(2, self.steps + 1), observed["convex"]),
                predicted_curve((2, self.steps), (2, 2), "at least 2"),
                rival_curve((2, self.steps), (4, 4), "4, sharpest without the term"),
                log="x",
            ),
        )


def _slope_constant() -> float:
    """Return c = max_u σ(−u)²/log(1 + e^{−u}), so that (mean of |ℓ'|)² ≤ c × mean of ℓ for the logistic loss."""
    ratio = lambda u: -np.exp(-2 * np.logaddexp(0, u)) / np.logaddexp(0, -u)
    best: Any = minimize_scalar(ratio, bounds=(-10, 10), method="bounded")
    return float(-ratio(best.x))


def _slack(observed: Observation, prefix: str = "") -> np.ndarray:
    """Return ⟨∇R(W_t), W_t − W̄⟩ − R(W_t) + R⁽ᵗ⁾(W̄), shape ``(seeds, step sizes, references, steps)``."""
    inner = np.diff(observed[f"{prefix}inner"], axis=-1, prepend=0.0)
    risk = observed[f"{prefix}risk"][:, :, None, :-1]
    return inner - risk + observed[f"{prefix}reference_risk"][..., :-1]
