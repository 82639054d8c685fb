"""Training keeps pooled convolutions shift-invariant on a circle, and zero padding breaks this.

Around a circle no shift of the input changes the output. Behind zero padding a shift moves the learned output by as
much as the kernel of the border says. The statement on the circle is about networks of any width, before, during and
after training. The statement on zero padding is about the limit of many channels. Kernel regression, with windows that
the border cuts elsewhere, predicts at all times of training how far the output of a trained network moves when its
input is shifted.
"""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.kernels.border_breaks_equivariance import experiment, theory

CHANNELS = 2  # of the signals
ROUNDING = 1e-4  # of outputs in single precision after training; a border moves them by a hundredth and more


class Signals(NamedTuple):
    """Signals of one size.

    Attributes:
        train: ``(m, N, C)``.
        y: labels ±1, ``(m,)``.
        test: unshifted and shifted, ``(shifts + 1, tests, N, C)``.
    """

    train: kit.Values
    y: kit.Values
    test: kit.Values


class Setting(NamedTuple):
    """Signals of every size."""

    signals: tuple[Signals, ...]


@kit.claim
class BorderBreaksEquivariance(kit.Claim[Setting]):
    """Networks of one convolution in training, on textures along a line, at test signals and their shifts."""

    sizes: tuple[kit.Count, ...] = kit.param(
        (8, 16, 32),
        "N of the signals",
        unit="positions",
        scope=kit.choices(
            (8, 16, 32), (10, 18, 36), (8, 14, 28), why="the border from half of it to an eighth"
        ),
    )
    shifts: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4),
        "shifts of the test signals, around a circle",
        unit="positions",
        scope=kit.choices((1, 2, 4), (1, 3, 4), (1, 2, 3)),
    )
    times: tuple[kit.Count, ...] = kit.param(
        (3, 12, 48),
        "t at which networks are read",
        unit="steps",
        scope=kit.choices(
            (3, 12, 48), (4, 16, 48), (2, 10, 40), why="networks leave the limit in the end"
        ),
    )
    taps: kit.Count = kit.param(
        5,
        "positions of a window, odd",
        scope=kit.choices(5, 7, why="of three, shifts beyond one all move outputs alike"),
    )
    signals: kit.Count = kit.param(8, "signals of training, m", scope=kit.between(6, 12))
    tests: kit.Count = kit.param(24, "test signals")
    rate: kit.Positive = kit.param(1.0, "η", scope=kit.between(0.5, 1.2))
    width: kit.Count = kit.param(
        256,
        "n of the convolution",
        unit="channels",
        scope=kit.between(256, 400, "departures of fewer reach a tenth"),
    )
    networks: kit.Seeds = kit.param(24, "networks of each world", unit="networks")

    kind = "limit"
    says = {
        "Training keeps pooled convolutions shift-invariant on a circle": "moves",
        "a shift moves the learned output by as much as the kernel of the border says": "deviation",
    }
    tiny = {
        "sizes": (6, 8),
        "shifts": (1, 2),
        "times": (2, 6),
        "taps": 3,
        "signals": 4,
        "tests": 4,
        "width": 24,
        "networks": 3,
    }
    full = {"width": 1024, "networks": 60}
    out_of_scope = {"rate": 6.0}
    precision = "float32"

    def axes(self):
        return {"size": self.sizes, "shift": self.shifts, "t": self.times}

    def setting(self, key):
        rng = kit.numpy_generator(key)

        def of_size(count: int) -> Signals:
            train, y = experiment.textures(rng, self.signals, count, CHANNELS)
            test, _ = experiment.textures(rng, self.tests, count, CHANNELS)
            moved = [np.roll(test, shift, axis=1) for shift in (0, *self.shifts)]
            return Signals(train, y, np.stack(moved))

        return Setting(tuple(map(of_size, self.sizes)))

    def hypotheses(self, setting):
        kernels = [self.kernels(signals, circular=False)[0].ntk for signals in setting.signals]
        largest = max(np.linalg.eigvalsh(kernel)[-1] for kernel in kernels) / self.signals
        yield kit.assume(
            "ηλ_max/m", self.rate * largest, between=(0, 2), note="choose a smaller --rate"
        )
        yield kit.assume(
            "taps of a window", self.taps, "<=", min(self.sizes), "choose larger --sizes"
        )

    def kernels(self, signals: Signals, *, circular: bool) -> tuple[theory.Kernels, theory.Kernels]:
        """Return the kernels of the training signals, and of all test signals with them."""
        train = theory.windows(signals.train, self.taps, circular=circular)
        test = theory.windows(signals.test, self.taps, circular=circular)
        return theory.kernels(train, train), theory.kernels(
            test.reshape(-1, *test.shape[2:]), train
        )

    def learned(
        self, signals: Signals, *, circular: bool = False, readout_only: bool = False
    ) -> kit.Values:
        """Return what the limit has learned of the test signals, ``(times, shifts + 1, tests)``."""
        among, cross = self.kernels(signals, circular=circular)
        among_kernel = among.nngp if readout_only else among.ntk
        cross_kernel = cross.nngp if readout_only else cross.ntk
        weights = theory.coefficients(among_kernel, signals.y, self.rate, self.times)
        outputs = weights @ cross_kernel.T
        return outputs.reshape(len(self.times), *signals.test.shape[:2])

    def deviations(self, setting: Setting, *, readout_only: bool = False) -> kit.Values:
        """Return the law of the deviation, ``(sizes, times, shifts)``."""
        outputs = [self.learned(of_size, readout_only=readout_only) for of_size in setting.signals]
        return np.stack(list(map(theory.deviation, outputs)))

    def predict(self, setting):
        around = [self.learned(signals, circular=True) for signals in setting.signals]
        return kit.law(
            deviation=("size t shift", self.deviations(setting)),
            limit_moves=("size t", [theory.largest_move(outputs) for outputs in around]),
        )

    def observe(self, setting, key):
        most = max(self.sizes)
        middle = len(self.sizes) // 2
        count = self.sizes[middle]

        def task(signals: Signals, reads: kit.Values, *, circular: bool) -> experiment.Task:
            windows = lambda x: experiment.read_windows(x, self.taps, most, circular=circular)
            return experiment.Task(windows(signals.train), signals.y, windows(signals.test), reads)

        bordered = [
            task(signals, experiment.pooling(size, most), circular=False)
            for signals, size in zip(setting.signals, self.sizes, strict=True)
        ]
        around = [
            task(setting.signals[middle], reads, circular=True)
            for reads in (
                experiment.pooling(count, most),
                experiment.pooling(count, most, stride=2),
                experiment.flattening(count, most),
            )
        ]
        learned = experiment.train_all(
            kit.numpy_generator(key),
            [*bordered, *around],
            self.width,
            self.networks,
            self.rate,
            self.times,
        )
        deviation = experiment.deviation(learned)
        moves = experiment.largest_move(learned)
        sizes = len(self.sizes)
        return kit.seen(
            deviation=("size seed t shift", deviation[:sizes]),
            deviation_around=("seed t shift", deviation[sizes]),
            deviation_of_flatten=("seed t shift", deviation[sizes + 2]),
            moves=("seed t", moves[sizes]),
            moves_at_border=("seed t", moves[middle]),
            moves_of_stride=("seed t", moves[sizes + 1]),
            moves_of_flatten=("seed t", moves[sizes + 2]),
        )

    def judge(self, law, seen):
        yield kit.agrees(
            "moves",
            seen.moves,
            ROUNDING,
            label="largest move of a trained network's output under a shift, around a circle",
        )
        yield kit.follows(
            "deviation",
            law.deviation,
            seen.deviation,
            0.2,  # the interval takes 0.08, and departures of networks this wide 0.04
            label="deviation of outputs under a shift, behind zero padding",
        )
        yield kit.idle(
            kit.agrees(
                "limit_moves",
                law.limit_moves,
                1e-10,  # double precision
                label="largest move of kernel regression under a shift, around a circle",
            ),
            "windows around a circle only change places, and a sum over them stays: no network is looked at",
        )

    def rivals(self, setting, law):
        size = law["size"]
        shift = law["shift"]
        middle = lambda axis: float(np.exp(np.log(axis).mean()))
        bordered = [self.learned(signals) for signals in setting.signals]
        outputs = np.array([theory.root_mean_square(learned[:, 0]) for learned in bordered])
        share = outputs / outputs[:, -1:]  # (sizes, times)
        rounding = ROUNDING * outputs
        yield kit.rival(
            "deviation ∝ 1/√N",
            "a mean over N positions fluctuates by 1/√N",
            id="like_a_mean",
            deviation=law.deviation * (size / middle(size)) ** 0.5,
        )
        yield kit.rival(
            "deviation ∝ shift",
            "each position of a shift moves the output as much again",
            deviation=law.deviation.isel(shift=0, drop=True) * shift / shift[0],
        )
        yield kit.rival(
            "only the last layer learns (NNGP)",
            "filters that move do not read the border otherwise",
            deviation=("size t shift", self.deviations(setting, readout_only=True)),
        )
        yield kit.rival(
            "deviation ∝ output at all times",
            "the deviation is a fixed part of what is learned",
            accepted="the part of the output that a border moves changes little during training",
            deviation=(
                "size t shift",
                law.deviation.isel(t=[-1]).transpose("size", "t", "shift").values
                * share[:, :, None],
            ),
        )
        yield kit.rival(
            "behind zero padding rounding alone moves outputs",
            "all positions share one filter, and pooling forgets where it answered",
            deviation=("size t shift", np.repeat(rounding[:, :, None], len(shift), axis=2)),
        )

    def controls(self, seen):
        yield kit.control(
            "zero padding", "windows at the border are cut", moves=seen.moves_at_border
        )
        yield kit.control(
            "a stride of two",
            "odd shifts exchange positions that are read and others",
            moves=seen.moves_of_stride,
        )
        yield kit.control(
            "flatten in place of pooling",
            "every position has last weights of its own",
            id="flatten",
            moves=seen.moves_of_flatten,
            deviation=seen.deviation_of_flatten,
        )
        yield kit.control("circular padding", "there is no border", deviation=seen.deviation_around)

    def figure(self, law, seen, rivals):
        end = {"t": -1}
        around = seen.moves.max("seed").values
        at_border = seen.moves_at_border.mean("seed").values
        yield kit.curves(
            "A longer signal has less of a border",
            law.deviation.isel(end),
            seen.deviation.isel(end),
            over="size",
            by="shift",
            x="positions N",
            y="deviation under a shift",
            name="shift {}",
            log="xy",
        )
        yield kit.curves(
            "The deviation is learned with the rest",
            law.deviation.isel(shift=-1, drop=True),
            seen.deviation.isel(shift=-1, drop=True),
            over="t",
            by="size",
            x="steps t",
            y="deviation under a shift",
            name="N = {}",
            log="xy",
        )
        yield kit.panel(
            "Around a circle only rounding is left",
            "steps t",
            "largest move over output",
            kit.observed_curve(self.times, around, "circular padding", kind="points"),
            kit.context_curve(self.times, at_border, "zero padding"),
            log="xy",
            ylim=(1e-8, 10),
        )
