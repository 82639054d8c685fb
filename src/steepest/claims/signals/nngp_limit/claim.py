"""Outputs of wide random networks converge to a Gaussian process, with departures of order 1/n.

The process has the kernel K^(L+1) of the layerwise recursion over L hidden layers of width n. Given the last hidden
layer, the outputs are independent Gaussians with a random covariance Σ. As n grows, Σ tends to K^(L+1). The variance of
Σ and the shift of its mean are of order 1/n, and the derivatives of the recursion carry them through the L hidden
layers. They give the excess kurtosis of an output, and the departure of the joint law at several inputs.
"""

from typing import Annotated, NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.signals._three_inputs import (
    FREQUENCIES,
    NAMES,
    characteristic,
    frequencies,
    three_images,
)
from steepest.claims.signals.nngp_limit.experiment import draw_covariances, moments
from steepest.claims.signals.nngp_limit.theory import (
    Case,
    characteristic_shift,
    first_order,
    kernel_after,
    kurtosis,
    with_variances,
)
from steepest.nn.activations import activation

AXES = {"covariance": "entry", "cosine": "frequency", "kurtosis": ""}  # last of each moment


class Setting(NamedTuple):
    """The cases, three images, and the frequencies u of the characteristic functions E cos(u·z) of each case."""

    cases: list[Case]
    inputs: kit.Values  # (3, 64)
    frequencies: kit.Values  # (cases, 13, 3)


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
        scope=kit.choices((32, 64, 128), (32, 96, 160), why="nearer ones leave the exponent open"),
    )
    hidden: kit.Count = kit.param(
        2, "hidden layers L", unit="layers", scope=kit.choices(2, 3, why="more need wider ones")
    )
    networks: Annotated[int, kit.Within(2)] = kit.param(
        1000, "random networks of the smallest width in a group, more of others like n"
    )
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
    tiny = {"widths": (32, 48, 64), "networks": 50, "seeds": 4}
    full = {
        "activations": ("relu", "tanh", "gelu"),
        "c_w": (2.0, 1.5, 1.9),
        "c_b": (0.0, 0.1, 0.2),
        "networks": 10_000,
    }
    out_of_scope = {"hidden": 12}

    def axes(self):
        named = {"entry": NAMES, "frequency": FREQUENCIES}
        return {"activation": self.activations, "width": self.widths, **named}

    def check_fields(self) -> None:
        kit.same_lengths(self, "activations", "c_w", "c_b")

    def setting(self, key):
        named = zip(self.activations, self.c_w, self.c_b, strict=True)
        cases = [Case(activation(name), *variances) for name, *variances in named]
        inputs = three_images()
        kernels = [kernel_after(case, inputs, self.hidden) for case in cases]
        return Setting(cases, inputs, np.stack([frequencies(kernel) for kernel in kernels]))

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
        tails = [kurtosis(case, setting.inputs, self.widths, self.hidden) for case in setting.cases]
        return kit.law(
            kernel=("activation entry", [order.kernel for order in orders]),
            joint=("activation frequency", [characteristic(order.kernel, u) for order, u in pairs]),
            departure=("activation width", np.divide.outer(shifts, self.widths)),
            kurtosis=("activation width", tails),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        worlds = []
        for case, u in zip(setting.cases, setting.frequencies, strict=True):
            for width in self.widths:
                # departures fall like 1/n, what sampling leaves of them like (n/networks)^½
                count = self.seeds * (self.networks * width // min(self.widths))
                drawn = draw_covariances(case, setting.inputs, width, self.hidden, count, rng)
                whole, short = (moments(covariances, u, self.seeds) for covariances in drawn)
                # outputs at the three inputs from three networks have no covariances
                alone = moments(drawn[0] * np.eye(3), u, self.seeds)["cosine"]
                earlier = {f"{name}_short": values for name, values in short.items()}
                worlds.append({**whole, **earlier, "cosine_alone": alone})
        shape = len(setting.cases), len(self.widths)
        measured = {}
        for name in worlds[0]:
            values = np.stack([world[name] for world in worlds])
            axes = f"activation width seed {AXES[name.partition('_')[0]]}"
            measured[name] = (axes, values.reshape(*shape, *values.shape[1:]))
        return kit.seen(**measured)

    def derive(self, law, seen):
        return {"departure": (seen.cosine - law.joint).mean("frequency")}

    def judge(self, law, seen):
        yield kit.follows(
            "kernel",
            law["kernel"],
            seen.covariance.isel(width=-1),
            0.04,  # its shift is below 1 %, sampling leaves 2 %
            label="covariance of an output at three inputs, largest width",
        )
        yield kit.follows(
            "joint_law",
            law.joint,
            seen.cosine.isel(width=-1),
            0.04,  # it is off by L/n, 0.02 at 128 neurons
            absolute=True,
            label="characteristic function at three inputs, largest width",
        )
        yield kit.follows(
            "joint_departure",
            law.departure,
            seen.departure,
            (0.75, 1.25),  # the next order takes 0.1 a layer at 32 neurons; tanh leaves 0.1
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
            (0.85, 1.15),  # the next order takes up to 0.05 at 32 neurons, sampling the rest
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

    def rivals(self, setting, law):
        yield from self.rivals_of_kernel(setting, law)
        yield kit.rival(
            "E z⁴/3(E z²)² is Π(1 + 2/n)",
            "the gates of ReLU forgotten",
            kurtosis=3 * ((1 + 2 / law.width) ** self.hidden - 1),
        )
        yield kit.rival(
            "deviations fall like n^(−1/2)",
            "an average over n neurons does",
            id="slow_decay",
            kurtosis=law["kurtosis"] * (law.width / law.width[0]) ** 0.5,
            departure=law.departure * (law.width / law.width[0]) ** 0.5,
        )
        if self.hidden > 1:  # one hidden layer tells nothing of how the order 1/n grows with depth
            yield kit.rival(
                "only one layer's fluctuations count",
                "the widths before it could already be infinite",
                id="one_layer_fluctuates",
                kurtosis=law["kurtosis"] / self.hidden,
                departure=law.departure / self.hidden,
            )

    def rivals_of_kernel(self, setting, law):
        """Return wrong theories of the limit: of the kernel, and of the joint law."""
        limit = law["kernel"].values
        short = np.stack(
            [kernel_after(case, setting.inputs, self.hidden - 1) for case in setting.cases]
        )
        apart = limit * np.repeat([1.0, 0.0], 3)
        stale = with_variances(short, limit)

        def joint(kernels: np.ndarray) -> tuple[str, list[np.ndarray]]:
            pairs = zip(kernels, setting.frequencies, strict=True)
            return "activation frequency", [characteristic(*pair) for pair in pairs]

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
            "each output by itself is as Gaussian",
            joint=joint(apart),
        )

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

    def figure(self, law, seen, rivals):
        wrong = {"∝ n^(−1/2)": rivals["slow_decay"].isel(activation=0)} if rivals else {}
        return tuple(
            kit.curves(
                title,
                law[name],
                # what sampling makes negative is drawn at the foot
                seen[name].mean("seed").clip(1e-4),
                over="width",
                by="activation",
                x="width n",
                y=y,
                rivals={label: rival[name] for label, rival in wrong.items()},
                log="xy",
            )
            for title, name, y in (
                ("Outputs become Gaussian", "kurtosis", "excess kurtosis"),
                ("and jointly so at three inputs", "departure", "departure of E cos(u·z)"),
            )
        )
