"""Linear convolutional networks of L layers end at stationary points of the spectrum's ℓ_{2/L} norm.

With two layers they reach the largest margin in the ℓ1 norm of the spectrum. The function is linear. Its weights β are
a circular convolution of L filters, and the spectrum β̂ is their Fourier transform. On a loss with an exponential tail
β grows, and its direction tends to a point that satisfies the first-order (KKT) conditions of the smallest ‖β̂‖ in
ℓ_{2/L} with all margins at least one. Two layers have a convex problem with one answer, the largest margin in ℓ1. Two
and three layers are run.
"""

import jax
import numpy as np
import xarray
from scipy.optimize import linprog

from steepest import kit
from steepest.claims.implicit_bias._stationarity import kkt_residual, slope_on_support
from steepest.claims.implicit_bias._tails import other_worlds
from steepest.claims.implicit_bias.linear_convolution.experiment import Setting, follow_all
from steepest.claims.implicit_bias.linear_convolution.figure import panels_of_depths
from steepest.nn.data import separable
from steepest.programs import fourier_margin, hard_margin

DEPTHS = (2, 3)
STATIONARY = (
    0.1  # KKT residual that counts as none; two layers settle like 1/log log(1/R), and leave 0.03
)
NEAR = 0.05  # part of the margin that may be missing, for the same reason
AxisOfTwo = tuple[kit.Positive, kit.Positive]


@kit.claim
class LinearConvolution(kit.Claim[Setting]):
    """Networks of two and three filters on synthetic separable sets, as they are sampled."""

    n: kit.Count = kit.param(
        10, "examples", scope=kit.between(8, 12, "with fewer, a single frequency may do")
    )
    dimension: kit.Count = kit.param(
        12,
        "dimension of inputs and of every filter, d",
        scope=kit.between(10, 14, "fewer leave few frequencies; more take time"),
    )
    margin: kit.Positive = kit.param(
        0.2,
        "ℓ2 margin of the sets by construction",
        scope=kit.between(0.1, 0.4, "of wide ones a single frequency may do"),
    )
    flipped: kit.Fraction = kit.param(0.0, "part of the labels that is flipped")
    scales: AxisOfTwo = kit.param(
        (1.0, 0.3),
        "norm of a filter at the start, by depth",
        scope=kit.choices((1.0, 0.3), (0.5, 0.5), why="any; small ones take time"),
    )
    horizons: AxisOfTwo = kit.param(
        (1e4, 1e5),
        "fall of the log of the risk, by depth",
        scope=kit.choices((1e4, 1e5), (3e4, 1e5), why="sooner some sets still wait at saddles"),
    )
    sets: kit.Seeds = kit.param(40, "separable sets, and starts")

    kind = "limit"
    says = {
        "end at stationary points of the spectrum's ℓ_{2/L} norm": "kkt",
        "reach the largest margin in the ℓ1 norm of the spectrum": "margin",
    }
    tiny = {"n": 3, "dimension": 6, "horizons": (50.0, 20.0), "sets": 6}
    full = {"sets": 200}
    out_of_scope = {"n": 60, "flipped": 0.3}

    def axes(self):
        return {"depth": DEPTHS, "unknown": tuple(f"β{i}" for i in range(self.dimension))}

    def setting(self, key):
        for_data, for_rest = jax.random.split(key)

        def draw(key: kit.Key) -> tuple[jax.Array, jax.Array]:
            data = separable(key, self.n, self.dimension, self.margin)
            return data.x, data.y

        draw_all = kit.compiled(lambda key: jax.vmap(draw)(jax.random.split(key, self.sets)))
        x, y = map(np.asarray, draw_all(for_data))
        rng = kit.numpy_generator(for_rest)
        labels = np.where(rng.random(y.shape) < self.flipped, -y, y)
        return Setting(x, labels, self._starts(rng))

    def _starts(self, rng: np.random.Generator) -> np.ndarray:
        """Draw Gaussian filters; of two layers the first has a flat spectrum, and the second is zero."""
        starts = rng.standard_normal((len(DEPTHS), self.sets, max(DEPTHS), self.dimension))
        starts /= np.sqrt(self.dimension)
        transform = np.fft.rfft(starts[0, :, 0])
        starts[0] = 0.0
        starts[0, :, 0] = np.fft.irfft(transform / abs(transform), self.dimension)
        return starts * np.array(self.scales)[:, None, None, None]

    def hypotheses(self, setting):
        separable = sum(_separates(x, y) for x, y in zip(setting.x, setting.y, strict=True))
        yield kit.assume(
            "sets that are separable", separable, "==", self.sets, "choose --flipped 0"
        )

    def predict(self, setting):
        programs = [fourier_margin(x, y) for x, y in zip(setting.x, setting.y, strict=True)]
        return kit.law(
            order=("depth", [2 / depth for depth in DEPTHS]),
            margin=("draw", [program.margin for program in programs]),
        )

    def observe(self, setting, key):
        return follow_all(setting, DEPTHS, self.horizons)

    def run_conditions(self, observed):
        arrived = observed["arrived"].mean()
        yield kit.assume(
            "share of flows that reached their horizon", arrived, "==", 1, "lower --horizons"
        )

    def derive(self, law, seen):
        """Return spectra, slopes and KKT residuals of every set, and the margin of two layers over the largest."""
        end = _spectrum(seen.weights.isel(reading=-1))
        pull = _spectrum(seen.pull)
        two = seen.sel(depth=2)
        size = abs(_spectrum(two.weights)).sum("frequency", skipna=False)
        return {
            "spectrum": end,
            "slope": slope_on_support(_halved(end), _halved(pull), "frequency"),
            "residual": kkt_residual(law.order, end, pull, seen.off_margin, "frequency"),
            "margin_ratio": two.least / size / law.margin,
        }

    def judge(self, law, seen):
        yield kit.share(
            "kkt",
            1.0,
            seen.residual <= STATIONARY,
            0.3,  # forty of forty leave 0.11 open, and every one that is late 0.04 more
            over="depth",
            label="share of sets with a KKT residual of at most 0.1",
        )
        yield kit.share(
            "margin",
            1.0,
            abs(1 - seen.margin_ratio.isel(reading=-1)) <= NEAR,
            0.3,  # as above
            label="two layers: share of sets within 0.05 of the largest margin in ℓ1 of the spectrum",
        )
        yield kit.share(
            "spectral_exponent",
            1.0,
            _told_from_neighbours(seen.slope, law.order),
            0.3,
            over="depth",
            label="share of sets whose exponent of |F(Σ q y x)| in |β̂| is nearest to 2/L − 1",
            note="an identity once the direction rests, on any loss; sets of one frequency count as near",
        )

    def rivals(self, setting, law):
        sets = list(zip(setting.x, setting.y, strict=True))
        orders = lambda *values: ("depth", np.array(values))
        yield kit.rival("ℓ1 at every depth", "it is so for two layers", order=orders(1.0, 1.0))
        yield kit.rival(
            "ℓ_{2/(L + 1)} at L layers",
            "the inputs' transform could count as a layer",
            order=2 / (law.depth + 1),
        )
        yield kit.rival(
            "the ℓ2 margin",
            "fully connected layers tend to it",
            margin=("draw", [_spectral_margin(x, y) for x, y in sets]),
        )

    def controls(self, seen):
        return other_worlds(seen)

    def figure(self, law, seen, rivals):
        return panels_of_depths(law, seen)


def _spectrum(weights: xarray.DataArray) -> xarray.DataArray:
    """Return the unitary Fourier transform over all frequencies, so that conjugate pairs count twice."""
    axis = weights.dims.index("unknown")
    dims = tuple("frequency" if dim == "unknown" else dim for dim in weights.dims)
    coords = {name: values for name, values in weights.coords.items() if name != "unknown"}
    return xarray.DataArray(np.fft.fft(weights, axis=axis, norm="ortho"), coords, dims)


def _halved(spectrum: xarray.DataArray) -> xarray.DataArray:
    """Return every conjugate pair once."""
    return spectrum.isel(frequency=slice(spectrum.sizes["frequency"] // 2 + 1))


def _told_from_neighbours(slope: xarray.DataArray, order: xarray.DataArray) -> xarray.DataArray:
    """Tell which slopes are at most half-way from order − 1 to that of the next depth; those of one frequency are."""
    half_way = order**2 / (2 * (2 + order))  # 2/L − 2/(L + 1), halved
    return abs(slope - (order - 1)).fillna(0.0) <= half_way


def _separates(x: np.ndarray, y: np.ndarray) -> bool:
    """Tell whether some weights give margins of one."""
    free = (None, None)
    rows = -y[:, None] * x
    return linprog(np.zeros(x.shape[1]), rows, -np.ones(len(y)), bounds=free).success


def _spectral_margin(x: np.ndarray, y: np.ndarray) -> float:
    """Return the margin over ℓ1 of the spectrum, of the direction with the largest ℓ2 margin."""
    direction = hard_margin(x, y).direction
    return (y * (x @ direction)).min() / abs(np.fft.fft(direction, norm="ortho")).sum()
