"""Wide networks learn smooth parts of a target first, at rates set by the kernel's eigenvalues.

Along eigenvector k of the tangent kernel the residual decays as (1 − ηλ_k)^t, with eigenvalue λ_k and step size η. Wide
networks are trained on digits and on a circle, towards targets with equal weight on several eigenvectors. On the circle
the eigenvectors of the rotation-invariant kernel are Fourier modes, and the smooth parts have low frequencies.
"""

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray

from steepest import kit
from steepest.dynamics import descend, logarithmic
from steepest.kernels import gram, kernel_dynamics
from steepest.nn.data import digits
from steepest.nn.networks import Limit, Mlp, mlp
from steepest.nn.types import Values

SETS = ("circle", "digits")
FINE = 4096  # angles of the Fourier coefficients of the kernel
RECORDS = 40


class Setting(NamedTuple):
    """Inputs of both sets, the orthonormal modes that are followed, and their eigenvalues."""

    inputs: list[Values]  # (m, d)
    modes: list[Values]  # v_k in columns, (m, modes)
    eigenvalues: Values  # λ_k of Θ/m, (set, mode)


@kit.claim
class SpectralBias(kit.Claim[Setting]):
    """Networks with one hidden layer, NTK parameterization, f − f₀ trained towards a sum of eigenvectors."""

    width: kit.Count = kit.param(
        1024, "n", unit="neurons", scope=kit.between(1024, 1536, "the theorem is for wide networks")
    )
    modes: Annotated[int, kit.Within(2, 8)] = kit.param(
        4, "followed: frequencies 0, 1, … or the largest eigenvalues", scope=kit.between(3, 4)
    )
    circle: Annotated[int, kit.Within(8, 256)] = kit.param(
        32, "points on the circle, equally spaced", scope=kit.choices(16, 32)
    )
    digits: Annotated[int, kit.Within(8, 150)] = kit.param(24, "images", scope=kit.between(16, 32))
    multiple: kit.Positive = kit.param(0.5, "ηλ_max", scope=kit.between(0.3, 0.9))
    steps: kit.Count = kit.param(200, "steps of descent", unit="steps", scope=kit.between(200, 300))
    seeds: kit.Seeds = kit.param(20, "initial networks")

    kind = "theorem"
    says = {
        "the residual decays as (1 − ηλ_k)^t": ("decay", "residual"),
        "learn smooth parts of a target first": "circle_order",
    }
    tiny = {"width": 128, "modes": 2, "circle": 8, "digits": 8, "steps": 30, "seeds": 4}
    full = {"width": 4096, "modes": 5, "steps": 800, "seeds": 60}
    out_of_scope = {"multiple": 2.5}

    @property
    def marks(self) -> Values:
        """Return the steps that are recorded."""
        return logarithmic(self.steps, RECORDS)

    def axes(self):
        return {
            "set": SETS,
            "mode": tuple(range(self.modes)),
            "step": tuple(self.marks),
        }

    def network(self, dimension: int, width: int) -> Mlp:
        """Return one hidden layer with biases, which both parities of frequencies need."""
        return mlp((dimension, width, 1), "erf", parameterized="ntk", c_w=2.0, c_b=1.0)

    def limit(self, dimension: int) -> Limit:
        """Return the infinitely wide network."""
        return self.network(dimension, self.width).limit()

    def setting(self, key):
        for_data = jax.random.split(key)[0]
        m = self.circle
        k = np.arange(self.modes)
        angles = 2 * np.pi * np.arange(m) / m
        fine = 2 * np.pi * np.arange(FINE) / FINE
        around, every = (np.sqrt(2) * np.stack([np.cos(a), np.sin(a)], 1) for a in (angles, fine))
        fourier = np.cos(np.outer(angles, k))
        raw = digits(n=self.digits, key=for_data)
        pixels = np.asarray(raw.x)
        images = pixels - pixels.mean(0)
        # Gaussian weights and descent see no more than scalar products: turned into their span
        if raw.n < raw.d:
            images = np.linalg.qr(images.T)[1].T * np.sqrt(raw.n / raw.d)
        dynamics = kernel_dynamics(gram(self.limit(images.shape[1]), images).ntk)
        # Θ between the first of FINE points on the circle and all of them
        profile = gram(self.limit(2), every[:1], every).ntk[0]
        eigenvalues = np.stack(
            [_folded(profile, m)[: self.modes], dynamics.eigenvalues[::-1][: self.modes]]
        )
        modes = [
            fourier / np.linalg.norm(fourier, axis=0),
            dynamics.vectors[:, ::-1][:, : self.modes],
        ]
        return Setting([around, images], modes, eigenvalues)

    def hypotheses(self, setting):
        slowest = (self.multiple * setting.eigenvalues[:, -1] / setting.eigenvalues.max(1)).min()
        gap = (setting.eigenvalues[:, :-1] / setting.eigenvalues[:, 1:]).min()
        yield kit.assume("ηλ_max", self.multiple, "<", 2, "descent diverges above")
        yield kit.assume(
            "steps × slowest ηλ_k", self.steps * slowest, ">=", 1, "more --steps, or fewer --modes"
        )
        yield kit.assume(
            "width / points",
            self.width / max(self.circle, self.digits),
            ">=",
            16,
            "the theorem is for n ≫ m",
        )
        yield kit.assume(
            "smallest ratio of neighbouring eigenvalues",
            gap,
            ">",
            1,
            "eigenvectors must be distinct",
        )

    def steps_of(self, setting: Setting) -> Values:
        """Return η λ_k, shape (set, mode)."""
        return self.multiple * setting.eigenvalues / setting.eigenvalues.max(1, keepdims=True)

    def predict(self, setting):
        rates = -np.log(np.abs(1 - self.steps_of(setting)))  # |1 − ηλ_k| a step
        return kit.law(
            decay=("set mode", rates),
            residual=("set step mode", np.exp(-rates[:, None] * self.marks[:, None])),
        )

    def observe(self, setting, key):
        lanes = zip(setting.inputs, setting.modes, setting.eigenvalues.max(1), strict=True)
        paths = [
            self.residuals(x, modes, self.multiple / largest, key) for x, modes, largest in lanes
        ]
        return kit.seen(residual=("set seed step mode", np.stack(paths)))

    def residuals(self, x: Values, modes: Values, lr: float, key: kit.Key) -> Values:
        """Return ⟨v_k, f_t − f_0 − y⟩ over its start, for targets y = √m Σ v_k, shape (seeds, records, modes)."""
        net = self.network(x.shape[1], self.width)
        scale = np.sqrt(len(modes))
        y = scale * modes.sum(1)

        def one(key: kit.Key) -> jax.Array:
            start = net.init(key)
            goal = net.apply(start, x) + y
            residual = lambda params: net.apply(params, x) - goal
            risk = lambda params: 0.5 * jnp.mean(residual(params) ** 2)
            look = {"left": lambda params: -modes.T @ residual(params) / scale}
            path = descend(risk, start, optax.sgd(lr), self.steps, record=self.marks, observe=look)
            return path.observed["left"]

        every = kit.compiled(lambda key: jax.lax.map(one, kit.keys(key, self.seeds)))
        return np.asarray(every(key))

    def derive(self, law, seen):
        """Return the rate of each mode, at the recorded step where a residual of 1/e is predicted."""
        marks = self.marks[1:]
        decay = np.empty((len(SETS), self.seeds, self.modes))
        residual = seen.residual.values
        for (i, k), rate in np.ndenumerate(law.decay.values):
            at = int(np.argmin(np.abs(rate * marks - 1)))
            decay[i, :, k] = -np.log(np.abs(residual[i, :, at + 1, k])) / marks[at]
        places = {"set": law["set"], "mode": law["mode"]}
        return {"decay": xarray.DataArray(decay, places, ("set", "seed", "mode"))}

    def judge(self, law, seen):
        orders = [
            kit.ranks(
                f"{name}_order",
                law.decay.sel(set=name, drop=True),
                seen.decay.sel(set=name, drop=True),
                over="mode",
                label=f"{name}: order of decay",
            )
            for name in SETS
        ]
        yield kit.follows("decay", law.decay, seen.decay, 0.1, label="rate of decay of each mode")
        yield kit.follows(
            "residual",
            law.residual,
            seen.residual,
            0.07,  # at n = 1024 residuals leave the limit by 0.02, and intervals are as wide
            absolute=True,
            label="residual of each mode over its start",
        )
        yield from orders

    def rivals(self, setting, law):
        marks = xarray.DataArray(self.marks, dims="step")

        def rates(values: xarray.DataArray) -> dict[str, Any]:
            """Return the arrays that go with other rates."""
            residual: Any = np.exp(-values * marks)
            return {"decay": values, "residual": residual.transpose("set", "step", "mode")}

        plain = law.decay.drop_vars("mode")
        yield kit.rival(
            "all modes decay at the mean rate", "one risk", **rates(0 * plain + plain.mean("mode"))
        )
        yield kit.rival(
            "high frequencies first",
            "they have the steepest slopes",
            id="high_first",
            **rates(plain.isel(mode=slice(None, None, -1))),
        )
        yield kit.rival(
            "exp(−ηλ_k t), the flow",
            "the limit of small steps",
            **rates(plain.copy(data=self.steps_of(setting))),
        )

    def controls(self, seen):
        mixed = (seen.residual + seen.residual.roll(mode=1, roll_coords=False)) / 2
        yield kit.control(
            "residuals along sums of two eigenvectors",
            "in these directions the kernel is not diagonal",
            residual=mixed,
        )

    def figure(self, law, seen, rivals):
        marks = self.marks
        for name in SETS:
            rates = law.decay.sel(set=name).values
            residual = seen.residual.sel(set=name).mean("seed").values
            curves = [kit.rival_curve(marks, np.exp(-rates.mean() * marks), "mean rate")]
            for k, rate in enumerate(rates):
                shade = k / (self.modes - 1)
                curves += [
                    kit.observed_curve(marks, residual[:, k], f"mode {k}", shade=shade),
                    kit.predicted_curve(marks, np.exp(-rate * marks), shade=shade),
                ]
            yield kit.panel(
                f"Each mode at its own rate: {name}",
                "1 + step",
                "residual / start",
                *curves,
                log="y",
                ylim=(1e-2, 2),
            )


def _folded(profile: Values, m: int) -> Values:
    """Return Σ_a λ_{k+am} for k = 0 … m − 1, from the kernel's Fourier coefficients λ over the circle, shape (m,)."""
    return np.fft.fft(profile).real.reshape(-1, m).sum(0) / len(profile)
