"""At width N, Adam's first step moves outputs by η(aN^{3/2} + bN + c√N), and in µP by a constant.

This is the limit of wide networks, with step size η. Under µP the step moves outputs by the same amount at any N. The
three terms come from the hidden layer, the read-out and the inputs, and a, b and c are known from the batch. The step
of a hidden weight has the sign of its neuron's weight in the read-out: all steps push the same way. So the first step
size of wide networks must fall faster than the 1/N of folklore. In narrow networks the inputs' term hides this, and the
sum grows nearly like N.
"""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.training.width_transfer import experiment, theory
from steepest.claims.training.width_transfer.point import WidthTransferPoint
from steepest.nn.data import digits

PARTS = ("hidden layer", "read-out", "inputs")


class Setting(NamedTuple):
    """Images, and a label for each."""

    x: kit.Values  # (largest batch, d)
    y: kit.Values  # (largest batch,)


@kit.claim
class WidthTransfer(kit.Claim[Setting]):
    """Networks with two hidden layers of rectified neurons on a batch of digits, odd ones against even."""

    widths: tuple[kit.Count, ...] = kit.param(
        (32, 128, 512),
        "N, of both hidden layers",
        unit="neurons",
        scope=kit.choices((32, 128, 512), (64, 256, 512), (48, 96, 192, 384)),
    )
    batches: tuple[kit.Count, ...] = kit.param(
        (1, 16), "B", unit="examples", scope=kit.choices((1, 16), (1, 8), (4, 32))
    )
    base_width: kit.Count = kit.param(
        64, "width at which µP is as usual", unit="neurons", scope=kit.between(32, 128)
    )
    part: kit.Positive = kit.param(
        0.001, "step size, over N^(−3/2)", scope=kit.between(0.0001, 0.004)
    )
    neurons: kit.Count = kit.param(
        3072, "neurons in all networks of a width, a seed", unit="neurons"
    )
    seeds: kit.Seeds = kit.param(12, "groups of networks")

    kind = "limit"
    says = {
        "moves outputs by η(aN^{3/2} + bN + c√N)": ("standard", "parts"),
        "in µP by a constant": "mup",
    }
    tiny = {"widths": (16, 32), "batches": (1, 3), "neurons": 64, "seeds": 3}
    full = {"widths": (32, 128, 512, 1024), "neurons": 4096}
    out_of_scope = {"widths": (2, 4), "neurons": 64, "seeds": 3}
    point = WidthTransferPoint

    def axes(self):
        return {"layer": PARTS, "batch": self.batches, "width": self.widths}

    def setting(self, key):
        data = digits(n=max(self.batches), key=key)
        kinds = np.asarray(data.y).argmax(1)
        return Setting(np.asarray(data.x, float), np.where(kinds % 2 == 1, 1.0, -1.0))

    def batch(self, setting: Setting, size: int) -> Setting:
        """Return the first examples."""
        return Setting(setting.x[:size], setting.y[:size])

    def hypotheses(self, setting):
        yield kit.assume(
            "smallest width", min(self.widths), ">=", 16, "the law is of wide networks"
        )
        yield kit.assume("relative error of a, b and c", self.error(setting), "<=", 0.015)

    def error(self, setting: Setting) -> float:
        """Return the largest standard error of the theory's means over neurons."""
        parts = [theory.parts(*self.batch(setting, size)) for size in self.batches]
        return float(max(of_batch.errors.max() for of_batch in parts))

    def predict(self, setting):
        means = [theory.parts(*self.batch(setting, size)).means for size in self.batches]
        powers = np.array([theory.powers(width) for width in self.widths])
        parts = np.einsum("bl,wl->lbw", means, powers)
        at_base = np.array(means) @ theory.powers(self.base_width)
        return kit.law(
            parts=("layer batch width", parts),
            standard=("batch width", parts.sum(0)),
            mup=("batch width", np.outer(at_base, np.ones(len(self.widths)))),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        d = setting.x.shape[1]
        shape = (self.seeds, len(self.batches), len(self.widths))
        parts = np.zeros((3, *shape))
        totals = np.zeros((5, *shape))
        for seed, column in np.ndindex(self.seeds, len(self.widths)):
            width = self.widths[column]
            networks = max(1, self.neurons // width)
            for _ in range(networks):
                network = experiment.draw(rng, d, width)
                for row, size in enumerate(self.batches):
                    x, y = self.batch(setting, size)
                    moves = experiment.moves(rng, network, x, y, self.part, self.base_width)
                    parts[:, seed, row, column] += moves.parts / networks
                    totals[:, seed, row, column] += np.array(moves[1:]) / networks
        standard, hidden_elsewhere, elsewhere, mup, steps_only = totals
        axes = "seed batch width"
        return kit.seen(
            parts=(f"layer {axes}", parts),
            standard=(axes, standard),
            hidden_elsewhere=(axes, hidden_elsewhere),
            elsewhere=(axes, elsewhere),
            mup=(axes, mup),
            steps_only=(axes, steps_only),
        )

    def judge(self, law, seen):
        yield kit.follows(
            "parts",
            law.parts,
            seen.parts,
            0.12,  # of that the interval takes 6 to 8 %, and the next order 2 to 5 % at N = 32
            label="how far each part's step moves outputs, over η",
        )
        yield kit.follows(
            "standard",
            law.standard,
            seen.standard,
            0.12,  # of that the interval takes 6 to 8 %, and the next order 2 to 5 % at N = 32
            label="how far a step of all parts moves outputs, over η",
        )
        yield kit.follows(
            "mup",
            law.mup,
            seen.mup,
            0.12,  # the same
            label="the same under µP",
        )

    def rivals(self, setting, law):
        width = law.width
        part = lambda number: law.parts.isel(layer=number, drop=True)
        smallest = lambda array: array.isel(width=0, drop=True)
        narrow = float(width[0])
        hidden_at_base = smallest(part(0)) * (self.base_width / narrow) ** 1.5
        yield kit.rival(
            "∝ N",
            "steps must fall like 1/N, so that outputs move alike",
            id="folklore",
            standard=smallest(law.standard) * width / narrow,
        )
        yield kit.rival("only aN^{3/2}", "the largest power is what counts", standard=part(0))
        yield kit.rival(
            "bN + c√N",
            "signs of a hidden layer's steps do not know the read-out",
            id="random_signs",
            standard=part(1) + part(2),
        )
        yield kit.rival(
            "a without √(2/π)",
            "a weight of the read-out is as large as its root mean square",
            parts=law.parts.where(law.layer != PARTS[0], law.parts * np.sqrt(np.pi / 2)),
            standard=law.standard + part(0) * (np.sqrt(np.pi / 2) - 1),
        )
        yield kit.rival(
            "µP without a smaller read-out",
            "steps ∝ 1/N in hidden layer and read-out are enough",
            mup=(part(0) + part(1)) * self.base_width / width + part(2),
        )
        yield kit.rival(
            "µP with the hidden layer's usual step",
            "a smaller read-out makes up for all",
            mup=law.mup + hidden_at_base * (width / self.base_width - 1),
        )

    def controls(self, seen):
        yield kit.control(
            "the hidden layer's step at other neurons",
            "each neuron's step has the sign of its weight in the read-out",
            parts=seen.parts.where(seen.layer != PARTS[0], seen.hidden_elsewhere),
            standard=seen.elsewhere,
        )
        yield kit.control(
            "steps of µP with the usual start",
            "a read-out of the usual size sees too much of the hidden layer's step",
            mup=seen.steps_only,
        )

    def figure(self, law, seen, rivals):
        last = {"batch": self.batches[-1]}
        of_last = lambda array: array.sel(last, drop=True)
        wrong = {"∝ N": of_last(rivals["folklore"].standard)} if rivals else {}
        yield kit.curves(
            f"Each part has a power of its own (B = {self.batches[-1]})",
            of_last(law.parts),
            of_last(seen.parts),
            over="width",
            by="layer",
            x="width N",
            y="change of outputs / η",
            log="xy",
        )
        yield kit.curves(
            "All at once: faster than N in the end; under µP alike",
            of_last(law.standard),
            of_last(seen.standard),
            over="width",
            x="width N",
            y="change of outputs / η",
            rivals=wrong,
            more=(
                kit.predicted_curve(np.array(self.widths), of_last(law.mup).values, "theory, µP"),
                kit.observed_curve(
                    np.array(self.widths),
                    of_last(seen.mup).mean("seed").values,
                    "µP",
                    kind="points",
                    shade=0.7,
                ),
            ),
            log="xy",
        )
