"""Adam's RMS update is η√((s² + ρ)/(1 + s²)) for gradients with the signal-to-noise ratio s.

Here s is the mean of a weight's gradient divided by its standard deviation between batches, and ρ = (1 − β₁)/(1 + β₁).
This is the limit β₂ → 1, for gradients that are independent from step to step. So at β₁ = 0.9 Adam's RMS update is
0.229 η where batches are noise, and η where batches agree. Muon's RMS update of an m × n matrix is c(m/n) η/√max(m, n).
The factor c is 0.85 to 0.87 for five steps of Muon's iteration on matrices of noise, and one for an exactly orthogonal
update.
"""

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.update_size import experiment
from steepest.claims.training.update_size.experiment import Setting
from steepest.claims.training.update_size.point import UpdateSizePoint
from steepest.optimizers import Muon, gaussian_moments, spread_of_second_moment, update_size_of_adam

FOLKLORE = 0.2  # by which Muon's update is multiplied to match Adam's


@kit.claim
class UpdateSize(kit.Claim[Setting]):
    """Adam on Gaussian gradients and on digits at fixed weights; Muon's iteration on Gaussian matrices."""

    beta1: tuple[kit.Fraction, ...] = kit.param(
        (0.8, 0.9, 0.95),
        "β₁ of Adam on noise",
        scope=kit.choices((0.8, 0.9, 0.95), (0.5, 0.9, 0.96), (0.7, 0.85, 0.95)),
    )
    beta2: tuple[kit.Fraction, ...] = kit.param(
        (0.95, 0.999),
        "β₂ there",
        scope=kit.choices(
            (0.95, 0.999), (0.94, 0.998), (0.95, 0.998), why="nearer ones tell nothing of β₂"
        ),
    )
    agreement: tuple[kit.NonNegative, ...] = kit.param(
        (0.0, 0.3, 1.0, 2.0),
        "s of the gradients there",
        scope=kit.choices((0.0, 0.3, 1.0, 2.0), (0.1, 0.5, 1.5), (0.0, 0.2, 0.6, 3.0)),
    )
    batches: tuple[kit.Count, ...] = kit.param(
        (8, 24, 72),
        "examples of a batch of digits",
        scope=kit.choices(
            (8, 24, 72),
            (6, 24, 96),
            (12, 48),
            why="in smaller batches most weights have no gradient at most steps",
        ),
    )
    width: kit.Count = kit.param(
        24, "neurons of each of two hidden layers", unit="neurons", scope=kit.between(16, 40)
    )
    images: kit.Count = kit.param(300, "digits", unit="images", scope=kit.between(200, 400))
    small: kit.Count = kit.param(
        48, "m, rows of Muon's matrices", unit="rows", scope=kit.between(32, 64)
    )
    large: tuple[kit.Count, ...] = kit.param(
        (64, 128, 256),
        "n, their columns",
        unit="columns",
        scope=kit.choices((64, 128, 256), (96, 192, 384), (80, 320)),
    )
    weights: kit.Count = kit.param(1000, "weights of Adam on noise", unit="weights")
    steps: kit.Count = kit.param(2000, "steps, of which the last half counts", unit="steps")
    matrices: kit.Count = kit.param(8, "matrices of Muon, a seed", unit="matrices")
    seeds: kit.Seeds = kit.param(8, "streams of noise, networks and groups of matrices")

    kind = "theorem"
    says = {
        "Adam's RMS update is η√((s² + ρ)/(1 + s²))": ("adam", "digits"),
        "Muon's RMS update of an m × n matrix is c(m/n) η/√max(m, n)": "muon",
    }
    tiny = {
        "beta1": (0.5, 0.7),
        "beta2": (0.9, 0.95),
        "agreement": (0.0, 1.0),
        "batches": (8, 16),
        "width": 8,
        "images": 40,
        "small": 8,
        "large": (12, 24),
        "weights": 20,
        "matrices": 2,
        "steps": 80,
        "seeds": 3,
    }
    full = {"weights": 2000, "steps": 10_000, "seeds": 16}
    out_of_scope = {"beta1": (0.99, 0.995), "steps": 200}
    precision = "float32"
    point = UpdateSizePoint

    @property
    def betas(self) -> tuple[float, float]:
        """Return β₁ and β₂ of Adam on digits: the second β₁, and the larger β₂."""
        return self.beta1[1], max(self.beta2)

    @property
    def late(self) -> tuple[int, int]:
        """Return the first and the last step that counts."""
        return self.steps // 2 + 1, self.steps

    def axes(self):
        return {
            "beta1": self.beta1,
            "beta2": self.beta2,
            "s": self.agreement,
            "batch": self.batches,
            "n": self.large,
        }

    def check_fields(self) -> None:
        if len(self.beta1) < 2 or self.small > min(self.large):
            raise kit.UserError(
                f"beta1 needs two values and small must not exceed large, got {self.beta1}, {self.small}, "
                f"{self.large}; try --small {min(self.large)}"
            )

    def setting(self, key):
        return experiment.draw(key, self.images, self.width, self.seeds)

    def hypotheses(self, setting):
        yield kit.assume(
            "memory of m, 1/(1 − β₁), over half of the steps",
            2 / (1 - max(self.beta1)) / self.steps,
            "<=",
            0.1,
            "m must have forgotten its start: raise --steps",
        )
        yield kit.assume(
            "spread of v on noise",
            float(spread_of_second_moment(min(self.beta2), self.steps)),
            "<=",
            0.06,
            "the law is to first order in 1 − β₂: raise --beta2",
        )

    def predict(self, setting):
        on_digits = [self.on_digits(setting, batch) for batch in self.batches]
        return kit.law(
            adam=("beta1 beta2 s", self.on_noise()),
            digits=("seed batch", np.stack(on_digits, -1)),
            muon=("n", [Muon().update_size(self.small, n) for n in self.large]),
        )

    def on_noise(self) -> kit.Values:
        """Return the law on Gaussian gradients, ``(beta1, beta2, s)``."""
        beta1, beta2, s = np.meshgrid(self.beta1, self.beta2, self.agreement, indexing="ij")
        return update_size_of_adam(gaussian_moments(s), beta1, beta2, self.late)

    def on_digits(self, setting: Setting, batch: int) -> kit.Values:
        """Return the law for batches of digits over all weights that count, ``(seeds,)``."""
        sums = np.zeros(self.seeds)
        count = np.zeros(self.seeds)
        for moments, mask in zip(setting.moments, self.masks(setting, batch), strict=True):
            with np.errstate(invalid="ignore", divide="ignore"):  # of weights that have no gradient
                size = update_size_of_adam(moments.of_means(batch), *self.betas, self.late)
            sums += np.where(mask, size**2, 0).sum((1, 2))
            count += mask.sum((1, 2))
        return np.sqrt(sums / count)

    def masks(self, setting: Setting, batch: int) -> list[kit.Values]:
        """Return the weights that count in each layer, ``(seeds, out, in)``."""
        return [
            experiment.told(moments, batch, self.betas[1], self.late[0])
            for moments in setting.moments
        ]

    def observe(self, setting, key):
        of_noise, of_batches, of_matrices = kit.keys(key, 3)
        noise = self.adam_on_noise(of_noise)
        digits, all_images = self.adam_on_digits(setting, of_batches)
        matrices, lean = self.muon(of_matrices)
        lanes = (self.seeds, len(self.beta1), len(self.beta2), len(self.agreement))
        return kit.seen(
            adam=("seed beta1 beta2 s", noise[0].reshape(lanes)),
            repeated=("seed beta1 beta2 s", noise[1].reshape(lanes)),
            digits=("seed batch", digits),
            whole=("seed", all_images),
            muon=("seed n", matrices),
            lean=("seed n", lean),
        )

    def adam_on_noise(self, key: kit.Key) -> list[kit.Values]:
        """Return sizes of updates on fresh noise and on noise that is repeated, each ``(seeds, lanes)``."""
        grid = np.meshgrid(self.beta1, self.beta2, self.agreement, indexing="ij")
        lanes = [values.ravel().astype(np.float32) for values in grid]

        def sizes(keys: jax.Array) -> list[jax.Array]:
            def of_kind(weights: int, repeated: int) -> jax.Array:
                on_key = lambda key: experiment.on_noise(key, lanes, weights, self.steps, repeated)
                return jax.lax.map(on_key, keys)

            quarter = -(-self.weights // 4)
            return [of_kind(self.weights, 1), of_kind(quarter, experiment.REPEATED)]

        return [
            np.asarray(values, float)
            for values in kit.compiled(sizes)(jax.random.split(key, self.seeds))
        ]

    def adam_on_digits(self, setting: Setting, key: kit.Key) -> tuple[kit.Values, kit.Values]:
        """Return sizes of updates for each batch size, ``(seeds, batches)``, and for all images at once."""
        net = experiment.network(self.width)
        masks = [self.masks(setting, batch) for batch in self.batches]

        def sizes(keys: jax.Array, params: object, masks: list[list[jax.Array]]) -> list[jax.Array]:
            def of_batch(batch: int, steps: int, masks: list[jax.Array]) -> jax.Array:
                return jax.lax.map(
                    lambda lane: experiment.on_digits(
                        lane[0], setting, lane[1], lane[2], net, batch, self.betas, steps
                    ),
                    (keys, params, masks),
                )

            of_batches = [
                of_batch(batch, self.steps, of_one)
                for batch, of_one in zip(self.batches, masks, strict=True)
            ]
            return [*of_batches, of_batch(0, experiment.FEW, masks[0])]

        keys = jax.random.split(key, self.seeds)
        *batches, all_images = kit.compiled(sizes)(keys, setting.params, masks)
        return np.stack([np.asarray(size, float) for size in batches], -1), np.asarray(
            all_images, float
        )

    def muon(self, key: kit.Key) -> tuple[kit.Values, kit.Values]:
        """Return sizes of Muon's updates for matrices of noise and for lean ones, each ``(seeds, n)``."""
        rng = kit.numpy_generator(key)
        rank = max(1, self.small // 6)
        noise = []
        lean = []
        for n in self.large:
            full = rng.standard_normal((self.seeds, self.matrices, self.small, n))
            noise.append(experiment.muon(full))
            columns = rng.standard_normal((self.seeds, self.matrices, self.small, rank))
            lean.append(experiment.muon(columns @ full[:, :, :rank]))
        return np.stack(noise, -1), np.stack(lean, -1)

    def judge(self, law, seen):
        yield kit.follows(
            "adam",
            law.adam,
            seen.adam,
            0.01,  # the interval takes 0.4 %, the second order in 1 − β₂ as much at β₂ = 0.95
            label="on noise: size of Adam's update over η",
        )
        yield kit.follows(
            "digits",
            law.digits,
            seen.digits,
            0.04,  # where v varies by a tenth the second order in that takes 1 %, the interval another
            over="batch",
            label="on digits: size of Adam's update over η",
        )
        yield kit.follows(
            "muon",
            law.muon,
            seen.muon,
            0.01,  # of finite matrices the spectrum is off by 1/m²
            label="size of Muon's update over η",
        )

    def rivals(self, setting, law):
        ones = lambda array: xarray.ones_like(array)
        beta1 = law.adam.beta1
        rho = lambda beta: (1 - beta) / (1 + beta)
        square = law.adam.s**2
        yield kit.rival(
            "each weight moves by η",
            "its first step is the sign of the gradient",
            id="signs",
            adam=ones(law.adam),
            digits=ones(law.digits),
        )
        yield kit.rival(
            "(1 − β₁)η on noise",
            "a new gradient has this weight in m",
            adam=(1 - beta1) * ones(law.adam),
        )
        yield kit.rival(
            "√(1 − β₁) for √ρ",
            "the geometric sum of squares is forgotten",
            adam=np.sqrt((square + 1 - beta1) / (1 + square)) * ones(law.adam),
        )
        yield kit.rival(
            "√ρ η at every s",
            "batches are mostly noise",
            id="noise_alone",
            adam=np.sqrt(rho(beta1)) * ones(law.adam),
            digits=rho(self.betas[0]) ** 0.5 * ones(law.digits),
        )
        yield kit.rival(
            "0.2 η",
            "Muon's update is multiplied by it",
            id="folklore",
            adam=FOLKLORE * ones(law.adam),
            digits=FOLKLORE * ones(law.digits),
        )
        yield kit.rival(
            "v does not vary",
            "v is a mean over many steps",
            adam=np.sqrt((square + rho(beta1)) / (1 + square)) * ones(law.adam),
        )
        yield kit.rival(
            "Muon's singular values are all one",
            "it is called orthogonalization",
            id="orthogonal",
            muon=law.n**-0.5,
        )
        yield kit.rival(
            "c η/√min(m, n)",
            "an orthogonal m × n matrix has m singular values",
            muon=law.muon * np.sqrt(law.n / self.small),
        )

    def controls(self, seen):
        yield kit.control(
            f"each gradient {experiment.REPEATED} times in a row",
            "successive gradients are independent",
            id="repeated",
            adam=seen.repeated,
        )
        yield kit.control(
            "all images in every step",
            "all images at once have no noise",
            id="whole",
            digits=seen.whole.broadcast_like(seen.digits),
        )
        yield kit.control(
            f"matrices of rank {max(1, self.small // 6)}",
            "the gradient has directions in which it is zero",
            id="lean",
            muon=seen.lean,
        )

    def figure(self, law, seen, rivals):
        rule = {"0.2": rivals["folklore"].adam.isel(beta1=0, beta2=-1, drop=True)} if rivals else {}
        n = np.array(self.large, float)
        yield kit.curves(
            "The more batches agree, the larger the update",
            law.adam.isel(beta2=-1, drop=True),
            seen.adam.isel(beta2=-1, drop=True),
            over="s",
            by="beta1",
            x="s, mean of the gradient over its deviation",
            y="size of Adam's update / η",
            name="β₁ = {}",
            rivals=rule,
            ylim=(0, 1.05),
        )
        yield kit.curves(
            "Digits: larger batches agree more",
            law.digits.mean("seed"),
            seen.digits,
            over="batch",
            x="examples of a batch",
            y="size of Adam's update / η",
            log="x",
            ylim=(0, 1.05),
        )
        yield kit.curves(
            "Muon's update is not quite orthogonal",
            law.muon * np.sqrt(law.n),
            seen.muon * np.sqrt(seen.n),
            over="n",
            x="columns n",
            y="√max(m, n) times its size",
            more=(kit.rival_curve(n, np.ones_like(n), "orthogonal"),),
            log="x",
            ylim=(0, 1.1),
        )
