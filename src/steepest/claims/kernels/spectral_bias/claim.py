"""Wide networks learn smooth parts of a target first, at rates set by the kernel's eigenvalues.

Along eigenvector k of the tangent kernel the residual decays as (1 − ηλ_k)^t, with eigenvalue λ_k and step size η. Wide
networks are trained on digits and on a circle, towards targets with equal weight on several eigenvectors. On the circle
the eigenvectors of the rotation-invariant kernel are Fourier modes, and the smooth parts have low frequencies. The
statements of Mercer and of the reproducing property on the circle are checked too: eigenvalues are Fourier
coefficients, and Σ⟨f, ψ_k⟩²/λ_k is the squared norm of the RKHS, with eigenfunctions ψ_k. The tangent kernel of ReLU
networks without biases has λ_k ∝ (k² + 3)/(k² − 1)² for even frequencies k, and λ_k = 0 for odd k ≥ 3. Such a network
never learns these odd frequencies.
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
EVEN = (2, 4, 6, 8, 10)  # frequencies at which ReLU networks are measured, and odd ones
ODD = (3, 5, 7, 9)
POINTS = 40  # equally spaced, even: then odd frequencies are folded on odd ones only
FLOOR = 1e-9  # Mercer sums leave out eigenvalues below this part of the largest: rounding there is no longer small
RECORDS = 40


class Setting(NamedTuple):
    """Inputs of both sets, the orthonormal modes that are followed, their eigenvalues, and the kernel's profile."""

    inputs: list[Values]  # (m, d)
    modes: list[Values]  # v_k in columns, (m, modes)
    eigenvalues: Values  # λ_k of Θ/m, (set, mode)
    profile: Values  # Θ between the first of FINE points on the circle and all of them
    coefficients: Values  # a of the function Σ a_i Θ(x_i, ·) on the circle, (m,)


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
            "frequency": EVEN,
            "eigenvalue": tuple(range(self.circle)),
        }

    def network(self, dimension: int, width: int) -> Mlp:
        """Return one hidden layer with biases, which both parities of frequencies need."""
        return mlp((dimension, width, 1), "erf", parameterized="ntk", c_w=2.0, c_b=1.0)

    def limit(self, dimension: int) -> Limit:
        """Return the infinitely wide network."""
        return self.network(dimension, self.width).limit()

    def setting(self, key):
        for_data, for_function = jax.random.split(key)
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
        profile = gram(self.limit(2), every[:1], every).ntk[0]
        eigenvalues = np.stack(
            [_folded(profile, m)[: self.modes], dynamics.eigenvalues[::-1][: self.modes]]
        )
        modes = [
            fourier / np.linalg.norm(fourier, axis=0),
            dynamics.vectors[:, ::-1][:, : self.modes],
        ]
        coefficients = np.asarray(jax.random.normal(for_function, (m,)))
        return Setting([around, images], modes, eigenvalues, profile, coefficients)

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
        m = self.circle
        a = setting.coefficients
        kernel = setting.profile[:: FINE // m][np.subtract.outer(np.arange(m), np.arange(m)) % m]
        rates = -np.log(np.abs(1 - self.steps_of(setting)))  # |1 − ηλ_k| a step
        return kit.law(
            decay=("set mode", rates),
            residual=("set step mode", np.exp(-rates[:, None] * self.marks[:, None])),
            spectrum=("eigenvalue", np.sort(_folded(setting.profile, m))),
            diagonal=setting.profile[0],
            norm=a @ kernel @ a,  # by the reproducing property
            relu=("frequency", relu_spectrum(1.0)[list(EVEN)]),
        )

    def observe(self, setting, key):
        kernel = gram(self.limit(2), np.asarray(setting.inputs[0])).ntk
        dynamics = kernel_dynamics(kernel)
        kept = dynamics.eigenvalues > FLOOR * dynamics.eigenvalues[-1]
        values = dynamics.eigenvalues[kept]
        psi = np.sqrt(self.circle) * dynamics.vectors[:, kept]  # mean square one over the points
        # ⟨f, ψ_k⟩ in L² of the points
        inner = psi.T @ (kernel @ setting.coefficients) / self.circle
        lanes = zip(setting.inputs, setting.modes, setting.eigenvalues.max(1), strict=True)
        paths = [
            self.residuals(x, modes, self.multiple / largest, key) for x, modes, largest in lanes
        ]
        relu, biased = (spectrum / spectrum[:, :1] for spectrum in self.relu_spectra(key))
        even = list(EVEN)
        odd = list(ODD)
        return kit.seen(
            residual=("set seed step mode", np.stack(paths)),
            relu=("seed frequency", relu[:, even]),
            relu_odd=("seed odd", relu[:, odd]),
            biased=("seed frequency", biased[:, even]),
            biased_odd=("seed odd", biased[:, odd]),
            spectrum=("eigenvalue", dynamics.eigenvalues),
            diagonal=("point", psi**2 @ values),  # Mercer: K(x, x) = Σ λ_k ψ_k(x)²
            norm=(inner**2 / values).sum(),  # ‖f‖²_H = Σ ⟨f, ψ_k⟩²/λ_k
        )

    def relu_spectra(self, key: kit.Key) -> list[Values]:
        """Return v_k · Θ_n v_k at frequencies 0 … 10 for tangent kernels of ReLU networks, without and with biases."""
        angles = 2 * np.pi * np.arange(POINTS) / POINTS
        x = np.stack([np.cos(angles), np.sin(angles)], 1)
        modes = np.cos(np.outer(angles, np.arange(max(EVEN) + 1)))
        modes /= np.linalg.norm(modes, axis=0)
        nets = [
            mlp((2, self.width, 1), "relu", parameterized="ntk", c_w=2.0, bias=bias)
            for bias in (False, True)
        ]

        def one(net: Mlp, key: kit.Key) -> jax.Array:
            outputs = lambda params: modes.T @ net.apply(params, jnp.asarray(x))
            jacobian = jax.jacrev(outputs)(net.init(key))
            # v_k·Θv_k = ‖∂(v_k·f)/∂θ‖²
            squares = [
                (leaf.reshape(modes.shape[1], -1) ** 2).sum(1) for leaf in jax.tree.leaves(jacobian)
            ]
            return jnp.stack(squares).sum(0)

        def every(key: kit.Key) -> list[jax.Array]:
            seeds = kit.keys(key, self.seeds)
            return [jax.lax.map(lambda k, net=net: one(net, k), seeds) for net in nets]

        return [np.asarray(spectrum) for spectrum in kit.compiled(every)(key)]

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
        top = float(law.spectrum.max())
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
        # a mean over n neurons, off by some √(1/n), 3 % at n = 1024, and more where λ_k is small beside the others
        yield kit.follows("relu", law.relu, seen.relu, 0.12, label="ReLU without biases: λ_k / λ_0")
        yield kit.agrees(
            "relu_odd",
            abs(seen.relu_odd),
            1e-10,
            label="ReLU without biases: λ_k / λ_0 for odd k ≥ 3",
        )
        yield kit.idle(
            kit.agrees(
                "circle_spectrum",
                abs(seen.spectrum - law.spectrum) / top,
                1e-10,
                label="circle: eigenvalues − folded Fourier coefficients",
            ),
            "it is so for every kernel of the difference of angles",
        )
        yield kit.idle(
            kit.agrees(
                "circle_mercer",
                abs(seen.diagonal / law.diagonal - 1),
                1e-6,
                label="circle: Σ λ_k ψ_k(x)² / K(x, x) − 1",
            ),
            "the spectral theorem for any Gram matrix",
        )
        yield kit.follows("circle_norm", law.norm, seen.norm, 1e-6, label="circle: ‖f‖² by Mercer")

    def rivals(self, setting, law):
        m = self.circle
        distances = np.subtract.outer(np.arange(m), np.arange(m)) % m
        kernel = setting.profile[:: FINE // m][distances] / m
        f = m * kernel @ setting.coefficients
        power = lambda matrix: float(f @ matrix @ f) / m
        k = np.array(EVEN)
        marks = xarray.DataArray(self.marks, dims="step")

        def rates(values: xarray.DataArray) -> dict[str, Any]:
            """Return the arrays that go with other rates."""
            residual: Any = np.exp(-values * marks)
            return {"decay": values, "residual": residual.transpose("set", "step", "mode")}

        plain = law.decay.drop_vars("mode")
        yield kit.rival(
            "ReLU: the last layer's kernel, λ_k ∝ k⁻⁴",
            "the other kernel of a wide network",
            relu=("frequency", relu_spectrum(0.0)[k]),
        )
        yield kit.rival(
            "ReLU: λ_k ∝ k⁻² from k = 2 on",
            "true for large k",
            relu=4 * law.relu[0] / law.frequency**2.0,
        )
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
        yield kit.rival(
            "the RKHS is T⁻¹L²", "as printed: ‖f‖² = ‖Tf‖²", norm=power(kernel @ kernel)
        )
        yield kit.rival("the norm of L²", "the notes' basis {ψ_k} of H_K", norm=power(np.eye(m)))

    def controls(self, seen):
        mixed = (seen.residual + seen.residual.roll(mode=1, roll_coords=False)) / 2
        yield kit.control(
            "residuals along sums of two eigenvectors",
            "in these directions the kernel is not diagonal",
            residual=mixed,
        )
        yield kit.control(
            "ReLU networks with biases",
            "the kinks no longer come in antipodal pairs",
            relu=seen.biased,
            relu_odd=seen.biased_odd,
        )

    def figure(self, law, seen, rivals):
        marks = self.marks
        drawn = []
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
            drawn.append(
                kit.panel(
                    f"Each mode at its own rate: {name}",
                    "1 + step",
                    "residual / start",
                    *curves,
                    log="y",
                    ylim=(1e-2, 2),
                )
            )
        k = np.arange(self.circle)
        shown = lambda spectrum: np.maximum(
            spectrum.values[::-1] / float(law.spectrum.max()), 1e-17
        )
        yield from drawn
        yield kit.panel(
            "The circle's spectrum is Fourier's",
            "eigenvalue",
            "λ_k / λ_0",
            kit.observed_curve(k, shown(seen.spectrum), "Gram matrix", kind="points"),
            kit.predicted_curve(k, shown(law.spectrum), "Fourier coefficients"),
            log="y",
        )


def _folded(profile: Values, m: int) -> Values:
    """Return Σ_a λ_{k+am} for k = 0 … m − 1, from the kernel's Fourier coefficients λ over the circle, shape (m,)."""
    return np.fft.fft(profile).real.reshape(-1, m).sum(0) / len(profile)


def relu_spectrum(first: float) -> Values:
    """Return λ_k/λ_0, k = 0 … 10, of the kernel of ReLU networks without biases on POINTS points; zero for odd k ≥ 3.

    On the whole circle it is ∝ ∫ cos kθ [sin θ + (1 + first) (π − θ) cos θ] dθ over 0 … π. The first layer's weights
    add the last term: ``first`` is 1 for the tangent kernel and 0 where only the last layer is trained.
    """
    k = np.arange(1000 * POINTS)
    even = k % 2 == 0
    # ∫ cos kθ sin θ dθ = 2/(1 − k²) for even k, zero for odd ones
    of_sine = np.where(even, 2 / np.where(even, 1.0 - k**2, 1), 0.0)
    # ∫ (π − θ) cos mθ = 2/m² for odd m, 0 for even m, but π²/2 for m = 0
    below = np.abs(k - 1)
    triangle = lambda m: np.where(m % 2 == 1, 2 / np.maximum(m, 1.0) ** 2, (m == 0) * np.pi**2 / 2)
    # cos kθ cos θ = ½ [cos (k + 1)θ + cos (k − 1)θ]
    spectrum = of_sine + (1 + first) * (triangle(k + 1) + triangle(below)) / 2
    # on equally spaced points k cannot be told from aPOINTS ± k
    shown = np.arange(max(EVEN) + 1)
    turns = POINTS * np.arange(1, 999)[:, None]
    folded = spectrum[shown] + (spectrum[turns - shown] + spectrum[turns + shown]).sum(0)
    return folded / folded[0]
