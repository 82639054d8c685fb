"""Outputs of wide random networks converge to a Gaussian process, with departures of order 1/n.

The process has the kernel K^(L+1) of the layerwise recursion over L hidden layers of width n. Given the last hidden
layer, the outputs are independent Gaussians with a random covariance Σ. As n grows, Σ tends to K^(L+1). The variance of
Σ and the shift of its mean are of order 1/n, and the derivatives of the recursion carry them through the L hidden
layers. They give the excess kurtosis of an output, and the departure of the joint law at several inputs. For ReLU
networks whose weights are random signs, the excess kurtosis also falls like 1/n, with another factor.

The limit needs no bound on the growth of σ: for σ = exp, with two hidden layers, outputs converge too. But the mean of
their covariance is infinite at every width. So averages over neurons have moments only under such a bound.
"""

from typing import Annotated

import numpy as np
import xarray

from steepest import kit
from steepest.claims.signals.nngp_limit.experiment import (
    GROWTH_C_W,
    Moments,
    Setting,
    draw_covariances,
    draw_relu_outputs,
    draw_wide,
    excess_kurtosis,
    largest_shares,
    moments,
    of_variance,
    three_images,
)
from steepest.claims.signals.nngp_limit.figure import panels_of_limit
from steepest.claims.signals.nngp_limit.theory import (
    ENTRIES,
    Case,
    characteristic,
    characteristic_shift,
    exponential_kernel,
    first_kernel,
    first_order,
    frequencies,
    kurtosis,
    kurtosis_of_signs,
    next_kernel,
)
from steepest.nn.activations import activation

KERNEL = 0.04
"""Of the kernel at the largest width: its shift is below 1 %, sampling leaves 2 %."""
FREQUENCY = 0.04
"""Of a characteristic function at the largest width: it is off by L/n, 0.02 at 128 neurons."""
JOINT = (0.75, 1.25)
"""Factors: the next order takes 10 % a hidden layer at 32 neurons, a third of that in the mean; tanh leaves 10 %."""
KURTOSIS = (0.85, 1.15)
"""Factors: where only the order 1/n is known the next one takes up to 5 % at 32 neurons, sampling the rest."""
SIGNS = 0.3
"""Of the kurtosis of signs: at 32 neurons it is a half, and known to 0.1."""
TYPICAL = 0.08
"""Of the median covariance of σ = exp: at 512 neurons the next order takes 4 %, sampling 2 %."""
ONE_NETWORK = 0.1
"""Of a share: in one sum of twenty two networks are as large, and the interval takes 0.03."""
GENTLE = 0.8
"""Largest variance of the first layer, for σ = exp: its limit is seen at hundreds of neurons."""
STEEP = 4.0
"""The same where its infinite mean is seen in hundreds of networks."""
SUMS = 10
"""Of such networks in each group."""
EXPONENTIAL_WIDTHS = (8, 16, 32)
"""Of these."""
WIDTH = 512
"""Of networks near their limit for σ = exp."""
NARROW = 16
"""Of a changed world."""


@kit.claim
class NngpLimit(kit.Claim[Setting]):
    """Outputs of random networks on three images of digits, from narrow to wide."""

    activations: tuple[str, ...] = kit.param(
        ("relu", "tanh"),
        "activations",
        unit="name",
        scope=kit.choices(("relu", "tanh"), ("relu", "erf"), why="C_W and C_b are for these"),
    )
    c_w: tuple[kit.Positive, ...] = kit.param(
        (2.0, 1.5), "C_W of each", scope=kit.choices((2.0, 1.5), (2.0, 1.3), (1.8, 1.7))
    )
    c_b: tuple[kit.NonNegative, ...] = kit.param(
        (0.0, 0.1), "C_b of each", scope=kit.choices((0.0, 0.1), (0.0, 0.2))
    )
    widths: tuple[kit.Count, ...] = kit.param(
        (32, 64, 128),
        "width n of every hidden layer",
        unit="neurons",
        scope=kit.choices(
            (32, 64, 128),
            (32, 96, 160),
            why="widths a factor of three apart hardly give the exponent",
        ),
    )
    hidden: kit.Count = kit.param(
        2,
        "hidden layers L",
        unit="layers",
        scope=kit.choices(
            2, 3, why="one layer of signs is off by too little, more need wider ones"
        ),
    )
    sign_widths: tuple[kit.Count, ...] = kit.param(
        (8, 16, 32),
        "widths of networks whose weights are signs ±1",
        unit="neurons",
        scope=kit.choices((8, 16, 32), (8, 24, 48), why="narrower ones are off by higher orders"),
    )
    exponentials: Annotated[int, kit.Within(2)] = kit.param(
        400, "networks with σ = exp in a group near their limit, and in each sum of narrow ones"
    )
    networks: Annotated[int, kit.Within(2)] = kit.param(
        1000, "random networks of the smallest width in a group, more of others like n"
    )
    sign_networks: Annotated[int, kit.Within(2)] = kit.param(
        3000, "networks of signs of each width in a group"
    )
    sign_outputs: kit.Count = kit.param(8, "their outputs", unit="neurons")
    seeds: Annotated[int, kit.Within(4)] = kit.param(10, "groups of networks")

    kind = "limit"
    says = {
        "Outputs of wide random networks converge to a Gaussian process": ("kernel", "joint_law"),
        "departures of order 1/n": (
            kit.literal("kurtosis", power={"width": -1}),
            "kurtosis_exponent",
            kit.literal("joint_departure", "departure", power={"width": -1}),
            "joint_exponent",
        ),
    }
    tiny = {
        "widths": (32, 48, 64),
        "exponentials": 20,
        "networks": 50,
        "sign_networks": 50,
        "seeds": 4,
    }
    full = {
        "activations": ("relu", "tanh", "gelu"),
        "c_w": (2.0, 1.5, 1.9),
        "c_b": (0.0, 0.1, 0.2),
        "networks": 10_000,
        "sign_networks": 20_000,
    }
    out_of_scope = {"hidden": 12}

    def axes(self):
        return {
            "activation": self.activations,
            "width": self.widths,
            "sign_width": self.sign_widths,
            "entry": tuple(f"{a + 1}{b + 1}" for a, b in ENTRIES),
            "frequency": tuple(f"u{i + 1}" for i in range(13)),
            "exponential_width": EXPONENTIAL_WIDTHS,
        }

    def check_fields(self) -> None:
        kit.same_lengths(self, "activations", "c_w", "c_b")

    def setting(self, key):
        named = zip(self.activations, self.c_w, self.c_b, strict=True)
        cases = [Case(activation(name), *variances) for name, *variances in named]
        inputs = three_images()
        kernels = [kernel_after(case, inputs, self.hidden) for case in cases]
        gentle = of_variance(inputs, GENTLE)
        return Setting(
            cases,
            inputs,
            np.stack([frequencies(kernel) for kernel in kernels]),
            gentle,
            frequencies(exponential_kernel(GROWTH_C_W, gentle, 2)),
        )

    def hypotheses(self, setting):
        yield kit.assume(
            "hidden layers / smallest width",
            self.hidden / min(self.widths),
            "<=",
            0.1,
            "the expansion is in L/n; choose wider --widths",
        )

    def predict(self, setting):
        orders = [first_order(case, setting.inputs, self.hidden) for case in setting.cases]
        pairs = list(zip(orders, setting.frequencies, strict=True))
        shifts = [characteristic_shift(order, u).mean() for order, u in pairs]
        kurtoses = [
            kurtosis(case, setting.inputs, self.widths, self.hidden) for case in setting.cases
        ]
        fast = exponential_kernel(GROWTH_C_W, setting.gentle, 2)
        return kit.law(
            kernel=("activation entry", np.stack([order.kernel for order in orders])),
            joint=(
                "activation frequency",
                np.stack([characteristic(order.kernel, u) for order, u in pairs]),
            ),
            departure=("activation width", np.divide.outer(shifts, self.widths)),
            kurtosis=("activation width", np.stack(kurtoses)),
            sign_kurtosis=(
                "sign_width",
                np.array([kurtosis_of_signs(n, self.hidden) for n in self.sign_widths]),
            ),
            exponential=("frequency", characteristic(fast, setting.gentle_frequencies)),
            typical=("entry", fast),
            largest=("exponential_width", np.ones(len(EXPONENTIAL_WIDTHS))),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        whole, short, alone = self.observe_moments(setting, rng)
        of_covariance = "activation width seed entry"
        of_cosine = "activation width seed frequency"
        signs, gaussian = self.observe_signs(setting, rng)
        return kit.seen(
            covariance=(of_covariance, whole[0]),
            covariance_short=(of_covariance, short[0]),
            cosine=(of_cosine, whole[1]),
            cosine_short=(of_cosine, short[1]),
            cosine_alone=(of_cosine, alone[1]),
            kurtosis=("activation width seed", whole[2]),
            kurtosis_short=("activation width seed", short[2]),
            sign_kurtosis=("seed sign_width", signs),
            gaussian_kurtosis=("seed sign_width", gaussian),
            **self.observe_growth(setting, rng),
        )

    def observe_growth(
        self, setting: Setting, rng: np.random.Generator
    ) -> dict[str, tuple[str, np.ndarray]]:
        """Return moments of wide networks with σ = exp and of two changed worlds, and shares of narrow ones."""
        draw = lambda log_neuron, width: draw_wide(
            log_neuron,
            setting.gentle,
            setting.gentle_frequencies,
            (self.seeds, self.exponentials, width),
            rng,
        )
        worlds = {
            "": draw(lambda z: z, WIDTH),
            "_narrow": draw(lambda z: z, NARROW),
            "_square": draw(lambda z: z**2 / 2, WIDTH),
        }
        groups = self.seeds * SUMS
        shares = largest_shares(STEEP, EXPONENTIAL_WIDTHS, groups, self.exponentials, rng)
        of_sums = [share.reshape(self.seeds, SUMS, -1) for share in shares]
        axes = "seed draw exponential_width"
        measured = {"largest": (axes, of_sums[0]), "largest_shallow": (axes, of_sums[1])}
        for name, world in worlds.items():
            measured[f"exponential{name}"] = ("seed frequency", world.cosine)
            measured[f"typical{name}"] = ("seed entry", world.median)
        return measured

    def observe_moments(self, setting: Setting, rng: np.random.Generator) -> list[Moments]:
        """Return moments of networks, of them one layer earlier, and with outputs of three networks at three inputs."""
        worlds = []
        for case, u in zip(setting.cases, setting.frequencies, strict=True):
            for n in self.widths:
                # departures fall like 1/n, what sampling leaves of them like (n/networks)^½
                count = self.seeds * (self.networks * n // min(self.widths))
                drawn = draw_covariances(case, setting.inputs, n, self.hidden, count, rng)
                of_worlds = [*drawn, drawn[0] * np.eye(3)]
                worlds.append([moments(covariances, u, self.seeds) for covariances in of_worlds])
        shape = len(setting.cases), len(self.widths)
        stacked = [
            [np.stack(part) for part in zip(*world, strict=True)]
            for world in zip(*worlds, strict=True)
        ]
        return [
            Moments(*(part.reshape(*shape, *part.shape[1:]) for part in world)) for world in stacked
        ]

    def observe_signs(
        self, setting: Setting, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the excess kurtosis of networks of signs, and of Gaussians, ``(seeds, sign_widths)``."""
        shape = self.seeds, self.sign_networks, 3, self.sign_outputs

        def of(n: int, signs: bool) -> np.ndarray:
            count = self.seeds * self.sign_networks
            drawn = draw_relu_outputs(
                setting.inputs, n, self.hidden, self.sign_outputs, count, rng, signs=signs
            )
            return excess_kurtosis(drawn.reshape(shape))

        columns = [[of(n, signs) for n in self.sign_widths] for signs in (True, False)]
        return np.stack(columns[0], -1), np.stack(columns[1], -1)

    def derive(self, law, seen):
        return {"departure": (seen.cosine - law.joint).mean("frequency")}

    def judge(self, law, seen):
        yield kit.follows(
            "kernel",
            law["kernel"],
            seen.covariance.isel(width=-1),
            KERNEL,
            label="covariance of an output at three inputs, largest width",
        )
        yield kit.follows(
            "joint_law",
            law.joint,
            seen.cosine.isel(width=-1),
            FREQUENCY,
            absolute=True,
            label="characteristic function at three inputs, largest width",
        )
        yield kit.follows(
            "joint_departure",
            law.departure,
            seen.departure,
            JOINT,
            over="activation",
            label="departure of the characteristic function, mean over widths",
        )
        yield kit.power(
            "joint_exponent",
            law.departure.isel(activation=0),
            seen.departure.isel(activation=0),
            0.17,  # the next order takes 0.05, sampling leaves 0.08
            over="width",
            label=f"{self.activations[0]}: departure of the characteristic function against width",
        )
        yield kit.follows(
            "kurtosis",
            law["kurtosis"],
            seen["kurtosis"],
            KURTOSIS,
            label="excess kurtosis at every width",
        )
        yield kit.power(
            "kurtosis_exponent",
            law["kurtosis"].isel(activation=0),
            seen["kurtosis"].isel(activation=0),
            0.1,
            over="width",
            label=f"{self.activations[0]}: excess kurtosis against width",
        )
        yield kit.follows(
            "sign_kurtosis",
            law.sign_kurtosis,
            seen.sign_kurtosis,
            SIGNS,
            label="ReLU, weights that are signs: excess kurtosis",
        )
        yield from self.judge_growth(law, seen)

    def judge_growth(self, law, seen):
        """Compare networks with σ = exp with their limit, and the largest of many with their mean."""
        yield kit.follows(
            "exponential_law",
            law.exponential,
            seen.exponential,
            FREQUENCY,
            absolute=True,
            label=f"σ = exp: characteristic function at three inputs, {WIDTH} neurons",
        )
        yield kit.follows(
            "exponential_median",
            law.typical,
            seen.typical,
            TYPICAL,
            label=f"σ = exp: median covariance of an output over networks, {WIDTH} neurons",
        )
        yield kit.follows(
            "exponential_mean",
            law.largest,
            seen.largest,
            ONE_NETWORK,
            absolute=True,
            label="σ = exp: share of the largest network in the mean variance of many",
        )

    def rivals(self, setting, law):
        growth = (law.width / law.width[0]) ** 0.5
        yield from self.rivals_of_kernel(setting, law)
        yield kit.rival(
            "signs have the kurtosis of Gaussian weights",
            "the limit does not depend on the law of the weights",
            id="gaussian_kurtosis",
            # E Σ²/(E Σ)² = Π (1 + 5/n_l) under Gaussian weights, as E σ⁴/(E σ²)² − 1 = 5 for ReLU
            sign_kurtosis=3 * ((1 + 5 / law.sign_width) ** self.hidden - 1),
        )
        yield kit.rival(
            "E z⁴/3(E z²)² is Π(1 + 2/n)",
            "the gates of ReLU forgotten",
            kurtosis=3 * ((1 + 2 / law.width) ** self.hidden - 1),
        )
        yield kit.rival(
            "deviations fall like n^(−1/2)",
            "an average over n neurons does",
            id="slow_decay",
            kurtosis=law["kurtosis"] * growth,
            departure=law.departure * growth,
        )
        yield from self.rivals_of_depth(law)
        yield from self.rivals_of_growth(setting, law)

    def rivals_of_growth(self, setting, law):
        """Return wrong theories of networks with σ = exp."""
        u = setting.gentle_frequencies
        bare = exponential_kernel(GROWTH_C_W, setting.gentle, 2, bare=True)
        short = exponential_kernel(GROWTH_C_W, setting.gentle, 1)
        yield kit.rival(
            "σ = exp: K ↦ C_W exp K",
            "σ = exp as a kernel of its own, the variances forgotten",
            exponential=("frequency", characteristic(bare, u)),
            typical=("entry", bare),
        )
        yield kit.rival(
            "σ = exp: one layer short",
            "a network with two hidden layers has three matrices",
            exponential=("frequency", characteristic(short, u)),
            typical=("entry", short),
        )
        yield kit.rival(
            "σ = exp: no network counts among many",
            "the proposition without its hypothesis: averages over neurons have bounded means",
            largest=0 * law.largest,
        )

    def rivals_of_kernel(self, setting, law):
        """Return wrong theories of the limit: of the kernel, and of the joint law."""
        short = np.stack(
            [kernel_after(case, setting.inputs, self.hidden - 1) for case in setting.cases]
        )
        apart = law["kernel"].values * np.repeat([1.0, 0.0], 3)
        joint = lambda kernels: (
            "activation frequency",
            np.stack(
                [characteristic(*pair) for pair in zip(kernels, setting.frequencies, strict=True)]
            ),
        )
        stale = with_variances(short, law["kernel"].values)
        yield kit.rival(
            "half the kernel",
            "He's factor of 2 forgotten in the last layer",
            kernel=law["kernel"] / 2,
        )
        yield kit.rival(
            "the kernel is K^(L), one layer short",
            "a network with L hidden layers has L+1 matrices",
            kernel=("activation entry", short),
            joint=joint(short),
        )
        yield kit.rival(
            "correlations of outputs are one layer short, variances right",
            "near criticality variances stay, and one forgets that correlations do not",
            id="stale_correlations",
            kernel=("activation entry", stale),
            joint=joint(stale),
        )
        yield kit.rival(
            "outputs at different inputs are independent",
            "each output alone is as Gaussian",
            joint=joint(apart),
        )

    def rivals_of_depth(self, law: xarray.Dataset) -> list[kit.Rival]:
        """Return theories that forget how the order 1/n grows with depth; one hidden layer tells nothing of it."""
        if self.hidden == 1:
            return []
        return [
            kit.rival(
                "only one layer's fluctuations count",
                "the widths before it could already be infinite",
                id="one_layer_fluctuates",
                kurtosis=law["kurtosis"] / self.hidden,
                departure=law.departure / self.hidden,
            )
        ]

    def controls(self, seen):
        narrower = [0, *range(len(self.widths) - 1)]
        yield kit.control(
            "outputs one layer earlier",
            "it has one hidden layer less",
            covariance=seen.covariance_short,
            cosine=seen.cosine_short,
            kurtosis=seen.kurtosis_short,
        )
        yield kit.control(
            "outputs at the three inputs from three networks",
            "every output keeps its own law, the joint law is lost",
            cosine=seen.cosine_alone,
        )
        yield kit.control(
            "the next narrower networks in the place of each",
            "the networks are narrower than the law is told",
            cosine=seen.cosine.isel(width=narrower),
            kurtosis=seen["kurtosis"].isel(width=narrower),
        )
        yield kit.control(
            "networks with Gaussian matrices in the place of those of signs",
            "their fourth moment is 3",
            id="gaussian_weights",
            sign_kurtosis=seen.gaussian_kurtosis,
        )
        yield kit.control(
            f"σ = exp, {NARROW} neurons",
            "they are far from the limit",
            id="narrow_exponentials",
            exponential=seen.exponential_narrow,
            typical=seen.typical_narrow,
        )
        yield kit.control(
            "σ = exp(z²/2) for σ = exp",
            "E σ² = ∞, so that there is no K",
            exponential=seen.exponential_square,
            typical=seen.typical_square,
        )
        yield kit.control(
            "σ = exp with one hidden layer",
            "the covariance is a mean of lognormal numbers, which have moments",
            largest=seen.largest_shallow,
        )

    def figure(self, law, seen, rivals):
        return panels_of_limit(law, seen, rivals)


def kernel_after(case: Case, inputs: np.ndarray, hidden: int) -> np.ndarray:
    """Return the kernel after some hidden layers, ``(6,)``."""
    kernel = first_kernel(case, inputs)
    for _ in range(hidden):
        kernel = next_kernel(case, kernel)
    return kernel


def with_variances(kernels: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return kernels with their own correlations and the variances of others, ``(cases, 6)``."""
    first, second = np.transpose(ENTRIES)
    scale = np.sqrt(others[:, :3] / kernels[:, :3])
    # K_ab ← K_ab √(V_aa/K_aa) √(V_bb/K_bb), which leaves correlations as they are
    return kernels * scale[:, first] * scale[:, second]
