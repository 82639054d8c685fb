"""Weight decay shrinks a wide network's tangent kernel, so training does not end at kernel ridge.

With decay λ the kernel of a two-layer ReLU network shrinks as e^(−2λt) at every width. The limit of wide networks is a
linear equation for the outputs. In the NTK parameterization learning moves each weight by n^(−1/2) of its size, while
decay shrinks the whole weight: θ_t is e^(−λt)θ_0 up to terms of order n^(−1/2). In a network that is homogeneous of
degree D, with D = 2 for ReLU, the tangent kernel is e^(−2(D−1)λt) times the initial kernel. Outputs follow f' =
−e^(−2(D−1)λt) Θ_0(f − y) − Dλf: they rise to the targets and then fall to zero with the kernel. Decay towards the start
keeps the kernel, and ends at kernel ridge.
"""

from typing import Annotated

import numpy as np
import xarray

from steepest import kit
from steepest.claims.kernels.decay_leaves_kernel.experiment import (
    Lanes,
    Setting,
    draw_images,
    train,
)
from steepest.claims.kernels.decay_leaves_kernel.theory import follow, tangent_kernel
from steepest.nn.types import Values

POWERS = (1, 2)  # of the ReLU
DEGREES = (2, 3)
ACTIVATIONS = ("ReLU", "its square")
IDS = ("relu", "square")
RECORDS = 5
ZERO = 0.0  # share of the start that weights decay to
START = 1.0


@kit.claim
class DecayLeavesKernel(kit.Claim[Setting]):
    """Two-layer networks of ReLU and of its square on images of two digits, full-batch descent from outputs of zero."""

    widths: tuple[kit.Count, ...] = kit.param(
        (128, 384, 1152),
        "n, of each of a network's two copies",
        unit="neurons",
        scope=kit.choices(
            (128, 384, 1152), (160, 480, 1440), (128, 256, 512, 1024), why="narrower ones learn"
        ),
    )
    classes: tuple[Annotated[int, kit.Within(0, 9)], Annotated[int, kit.Within(0, 9)]] = kit.param(
        (0, 1), "two digits", unit="digit", scope=kit.choices((0, 1), (2, 7), (3, 6))
    )
    images: Annotated[int, kit.Within(2, 100)] = kit.param(
        12, "examples", scope=kit.between(8, 16, "the limit is for n ≫ examples")
    )
    shrinkage: kit.Positive = kit.param(
        1.0,
        "λt at the end",
        scope=kit.between(0.7, 1.0, "later what is learned is all that is left"),
    )
    steps: kit.Count = kit.param(
        50, "steps of descent, a multiple of five", unit="steps", scope=kit.choices(40, 50, 60)
    )
    multiple: kit.Positive = kit.param(
        1.0, "η times the largest eigenvalue of the kernel", scope=kit.between(0.6, 1.0)
    )
    seeds: kit.Seeds = kit.param(16, "networks of each kind")

    kind = "limit"
    says = {
        "shrinks a wide network's tangent kernel": "kernel",
        "The limit of wide networks is a linear equation for the outputs": (
            "outputs",
            "distance_relu",
            "distance_square",
        ),
        "training does not end at kernel ridge": ("outputs", "ridge"),
    }
    tiny = {"widths": (32, 64, 128), "images": 4, "steps": 20, "seeds": 3}
    full = {"widths": (128, 384, 1152, 3456), "seeds": 30}
    out_of_scope = {"multiple": 2.5, "widths": (32, 64, 128), "images": 4, "steps": 20, "seeds": 3}
    precision = "float32"

    def axes(self):
        return {
            "activation": ACTIVATIONS,
            "width": self.widths,
            "image": tuple(range(self.images)),
            "time": tuple(self.shrinkage * (k + 1) / RECORDS for k in range(RECORDS)),
        }

    def check_fields(self) -> None:
        if self.steps % RECORDS:
            raise kit.UserError(f"steps must be a multiple of {RECORDS}, got {self.steps}; try 50")
        if self.classes[0] == self.classes[1]:
            raise kit.UserError(f"classes must be two digits, got {self.classes}; try 0 1")

    def setting(self, key):
        x, y = draw_images(key, self.classes, self.images)
        kernels = [tangent_kernel(x, power) / self.images for power in POWERS]
        rates = self.multiple / np.array([np.linalg.eigvalsh(kernel)[-1] for kernel in kernels])
        # η λ T is the shrinkage, the same for both powers
        return Setting(x, y, rates, self.shrinkage / self.steps / rates)

    def hypotheses(self, setting):
        yield kit.assume(
            "η λ_max", self.multiple, "<", 2, "descent must be stable: lower --multiple"
        )
        yield kit.assume(
            "examples over the smallest width",
            self.images / min(self.widths),
            "<=",
            0.15,
            "the limit is for n ≫ examples",
        )
        yield kit.assume(
            "ηλ",
            self.shrinkage / self.steps,
            "<=",
            0.05,
            "the law is of small steps: raise --steps",
        )

    def predict(self, setting):
        at = self.steps // RECORDS * np.arange(1, RECORDS + 1)
        keep = 1 - self.shrinkage / self.steps
        shrunk = keep ** (2.0 * np.outer(POWERS, at))  # c^(2D − 2) with D = p + 1
        every = (len(DEGREES), len(self.widths), RECORDS)
        falls = self.in_the_limit(setting)
        holds = self.in_the_limit(setting, shrinks=0.0, fades=(1.0, 1.0))
        widths = np.array(self.widths, float)
        return kit.law(
            kernel=("activation width time", np.broadcast_to(shrunk[:, None], every)),
            limit=("activation time image", falls),
            outputs=("activation time", falls @ setting.y / self.images),
            ridge=("activation time", holds @ setting.y / self.images),
            distance=("activation width", np.broadcast_to(widths**-0.5, every[:2])),
            learned=("width", 1 / widths),
        )

    def in_the_limit(
        self, setting: Setting, shrinks: float = 2.0, fades: tuple[float, ...] = DEGREES
    ) -> Values:
        """Return outputs of the limit at the records, ``(degrees, records, images)``.

        Args:
            setting: images, step sizes and decays.
            shrinks: of the kernel, in powers of what weights shrink by for each degree but one.
            fades: power by which outputs shrink, for each degree.
        """
        paths = [
            follow(
                tangent_kernel(setting.x, power),
                setting.y,
                rate=rate,
                decay=decay,
                shrink=shrinks * power,
                fade=fade,
                steps=self.steps,
            )
            for power, rate, decay, fade in zip(
                POWERS, setting.rates, setting.decays, fades, strict=True
            )
        ]
        between = self.steps // RECORDS
        return np.stack(paths)[:, between::between]

    def observe(self, setting, key):
        kinds = [(i, towards) for towards in (ZERO, START) for i in range(len(POWERS))]
        every = [kind for kind in kinds for _ in range(self.seeds)]
        which = np.array([i for i, _ in every])
        towards = np.array([share for _, share in every])
        lanes = Lanes(np.array(POWERS)[which], setting.rates[which], setting.decays[which], towards)
        between = self.steps // RECORDS
        # networks of different widths are drawn apart
        trained = [
            train(for_width, setting, lanes, width=width, records=RECORDS, between=between)
            for for_width, width in zip(kit.keys(key, len(self.widths)), self.widths, strict=True)
        ]
        shape = (len(self.widths), 2, len(POWERS), self.seeds, RECORDS)
        kernel = np.stack([of.kernel for of in trained]).reshape(shape).transpose(1, 3, 2, 0, 4)
        outputs = np.stack([of.outputs for of in trained]).reshape(*shape, self.images)
        outputs = outputs.transpose(1, 3, 2, 0, 4, 5)
        axes = "seed activation width time"
        return kit.seen(
            kernel=(axes, kernel[0]),
            steady=(axes, kernel[1]),
            trained=(f"{axes} image", outputs[0]),
            steady_trained=(f"{axes} image", outputs[1]),
            targets=("image", setting.y),
        )

    def derive(self, law, seen):
        """Return distances from the limit, and how much of the targets the widest networks' outputs have."""
        widest = int(np.argmax(self.widths))
        early = (seen.trained - law.limit).isel(
            time=slice(2)
        )  # later what is learned, 1/n, is larger
        along = lambda trained: (trained.isel(width=widest, drop=True) * seen.targets).mean("image")
        return {
            "distance": np.sqrt((early**2).mean(["time", "image"])),
            "learned": (seen.kernel - law.kernel).isel(activation=1, time=-1, drop=True),
            "outputs": along(seen.trained),
            "ridge": along(seen.steady_trained),
        }

    def judge(self, law, seen):
        distances = [
            kit.power(
                f"distance_{id}",
                law.distance.sel(activation=activation, drop=True),
                seen.distance.sel(activation=activation, drop=True),
                0.2,  # the interval takes 0.08, the next order 0.05
                over="width",
                label=f"distance of outputs from the linear limit against n, {activation}",
            )
            for id, activation in zip(IDS, ACTIVATIONS, strict=True)
        ]
        yield kit.follows(
            "kernel",
            law.kernel,
            seen.kernel,
            0.08,  # what is learned adds 6/n to it, 0.05 at 128 neurons
            absolute=True,
            label="tangent kernel / tangent kernel at the start",
        )
        yield kit.follows(
            "outputs",
            law.outputs,
            seen.outputs,
            0.05,  # of the square the kernel of what is learned adds 0.02 at the end
            absolute=True,
            label="part of the targets in the outputs, widest networks",
        )
        yield from distances
        yield kit.power(
            "learned",
            law.learned,
            seen.learned,
            0.25,  # the interval takes 0.06, the next order 0.1
            over="width",
            label="what kernels of the square have more than e^(−4λt) at the end, against n",
        )
        yield kit.follows(
            "ridge",
            law.ridge,
            seen.ridge,
            0.01,  # kernel ridge leaves 0.02 to 0.05 of the targets
            absolute=True,
            label="the same, with decay towards the start",
        )

    def rivals(self, setting, law):
        part = lambda path: ("activation time", path @ setting.y / self.images)
        flat = xarray.ones_like(law.kernel)
        middle = float(np.exp(np.log(law.width).mean()))
        yield kit.rival(
            "e^(−(D−1)λt)",
            "the kernel shrinks as weights do",
            id="as_weights",
            kernel=law.kernel**0.5,
            outputs=part(self.in_the_limit(setting, shrinks=1.0)),
        )
        yield kit.rival(
            "e^(−4(D−1)λt)",
            "the kernel has two layers, and each shrinks twice",
            kernel=law.kernel**2,
            outputs=part(self.in_the_limit(setting, shrinks=4.0)),
        )
        yield kit.rival(
            "the kernel stays, outputs fade",
            "wide networks have the kernel of their start",
            id="fixed",
            kernel=flat,
            outputs=part(self.in_the_limit(setting, shrinks=0.0)),
        )
        yield kit.rival(
            "kernel ridge",
            "weight decay is ridge regression in linear models",
            kernel=flat,
            outputs=law.ridge,
        )
        yield kit.rival(
            "the kernel shrinks, outputs do not fade",
            "decay is felt by way of the kernel",
            outputs=part(self.in_the_limit(setting, fades=(0.0, 0.0))),
        )
        yield kit.rival(
            "distance ∝ 1/n",
            "as smooth networks leave their own kernel's training",
            distance=law.distance**2 * middle**0.5,
        )
        yield kit.rival(
            "what is learned adds n^(−1/2) to the kernel",
            "each weight learns n^(−1/2) of its size",
            learned=law.learned**0.5 / middle**0.5,
        )
        yield kit.rival(
            "decay towards the start does nothing",
            "towards the start there is nothing to decay",
            ridge=part(self.in_the_limit(setting, shrinks=0.0, fades=(0.0, 0.0))),
        )

    def controls(self, seen):
        yield kit.control(
            "decay towards the start",
            "weights keep the size of their start, and the kernel is theirs",
            kernel=seen.steady,
            trained=seen.steady_trained,
        )
        yield kit.control(
            "decay towards zero in place of the start",
            "all weights shrink",
            steady_trained=seen.trained,
        )

    def figure(self, law, seen, rivals):
        relu = {"activation": "ReLU", "drop": True}
        wrong = {
            label: rivals[id].kernel.sel(**relu).isel(width=0, drop=True)
            for label, id in (("e^(−λt)", "as_weights"), ("it stays", "fixed"))
            if rivals
        }
        widths = np.array(self.widths, float)
        far = np.exp(np.log(seen.distance.mean("seed")).mean("width"))
        slopes = widths**-0.5 / np.exp(np.log(widths**-0.5).mean())
        yield kit.curves(
            "ReLU: the kernel shrinks by e^(−2λt) at every width",
            law.kernel.sel(**relu),
            seen.kernel.sel(**relu),
            over="time",
            by="width",
            x="λt",
            y="kernel / kernel of the start",
            name="n = {}",
            rivals=wrong,
            ylim=(0, 1.05),
        )
        yield kit.curves(
            "Outputs rise to the targets, and fade with the kernel",
            law.outputs,
            seen.outputs,
            over="time",
            by="activation",
            x="λt",
            y="part of the targets",
            rivals={"kernel ridge": rivals["kernel_ridge"].outputs.sel(**relu)} if rivals else {},
            ylim=(0, 1.05),
        )
        yield kit.curves(
            "The distance from the limit falls like 1/√n",
            None,
            seen.distance,
            over="width",
            by="activation",
            x="width n [neurons]",
            y="distance of outputs",
            more=tuple(
                kit.predicted_curve(widths, float(size) * slopes, "" if place else "1/√n")
                for place, size in enumerate(far)
            ),
            log="xy",
        )
