"""Steps of 3/λ₀ catapult ReLU networks: their loss rises, then falls below its start.

λ₀ is the largest eigenvalue of the tangent kernel at the start. The networks have one hidden layer and train on thirty
digits of two classes. Descent ends where γλ is below 2, with γ the step size, as in linear networks of two layers.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray

from steepest import kit
from steepest.dynamics import descend
from steepest.kernels import ntk_top
from steepest.nn.data import digits, signs
from steepest.nn.networks import mlp
from steepest.nn.types import Params

IMAGES = 30  # of the two classes
DIVERGED = 1e12  # loss from which descent counts as diverged
LAZY = 1.0  # γλ₀ of networks that are not catapulted
LARGER = (6.0, 12.0, 24.0, 48.0)  # γλ₀ at which the end is shown, not judged


@kit.claim
class ReluCatapult(kit.Claim[None]):
    """ReLU networks of one hidden layer on raw and on centred digits, two classes; the raw digits are judged."""

    multiple: kit.Positive = kit.param(3.0, "γλ₀ of catapulted networks")
    width: kit.Count = kit.param(200, "hidden width", unit="neurons", scope=kit.between(100, 400))
    steps: kit.Count = kit.param(200, "steps of each descent", unit="steps")
    seeds: kit.Seeds = kit.param(3, "independent initial networks")

    kind = "empirical law"
    says = {"their loss rises, then falls below its start": "relu_thrown"}
    ragged = ("relu_loss", "relu_peak", "relu_flatness")
    tiny = {"width": 20, "steps": 10}
    full = {"width": 512, "steps": 400}
    out_of_scope = {"multiple": 1.5}

    @property
    def multiples(self) -> tuple[float, ...]:
        """Return γλ₀ of all networks."""
        return (LAZY, self.multiple, *LARGER)

    def hypotheses(self, setting):
        yield kit.assume("γλ₀ of catapulted networks", self.multiple, ">", 2, "raise --multiple")

    def predict(self, setting):
        return kit.law(
            relu_flatness=2.0,  # γλ_∞ at most
            relu_thrown=1.0,  # share of networks whose loss rises and then converges
        )

    def observe(self, setting, key):
        raw = signs(digits((3, 8), IMAGES))
        pixels = np.asarray(raw.x)
        images = np.stack([pixels, pixels - pixels.mean(0)])
        ends = kit.compiled(self.ends)(key, images, np.asarray(raw.y))
        return kit.seen(**{name: ("data seed relu", values) for name, values in ends.items()})

    def ends(self, key: kit.Key, images: jax.Array, labels: jax.Array) -> dict[str, jax.Array]:
        """Return how descents end, by images, network and γλ₀."""
        noise = jax.random.normal(key, (self.seeds, self.width, images.shape[2] + 1))
        starts = ({"w": noise[..., :-1]}, {"w": noise[..., -1][:, None]})
        over_multiples = jax.vmap(self.descend, (None, None, None, 0))
        over_networks = jax.vmap(over_multiples, (None, None, 0, None))
        over_images = jax.vmap(over_networks, (0, None, None, None))
        return over_images(images, labels, starts, jnp.array(self.multiples))

    def descend(
        self, images: jax.Array, labels: jax.Array, start: Params, multiple: jax.Array
    ) -> dict[str, jax.Array]:
        """Descend at γ = multiple/λ₀, and return last and largest loss over the first, and γλ at the end."""
        widths = (images.shape[1], self.width, 1)
        net = mlp(widths, "relu", parameterized="ntk", c_w=2.0, bias=False)
        lr = multiple / ntk_top(net, start, images)
        risk = lambda params: 0.5 * jnp.mean((net.apply(params, images) - labels) ** 2)
        path = descend(risk, start, optax.sgd(lr), self.steps, ceiling=DIVERGED)
        return {
            "relu_loss": path.risk[-1] / path.risk[0],
            "relu_peak": jnp.nanmax(path.risk) / path.risk[0],
            "relu_flatness": lr * ntk_top(net, path.params, images),
        }

    def derive(self, law, seen):
        """Return what became of catapulted networks on raw digits."""
        end = seen.isel(data=0, relu=1)
        # where no neuron is active any more γλ is zero
        thrown = (end.relu_peak > 1) & (end.relu_loss < 1) & (end.relu_flatness > 0)
        return {"relu_end": end.relu_flatness, "thrown": thrown.astype(float).mean("seed")}

    def judge(self, law, seen):
        label = "share of ReLU networks whose loss does not rise, or does not converge then"
        off = abs(seen.thrown - law.relu_thrown)
        yield kit.agrees("relu_thrown", off, 0.0, label=label)
        label = f"γλ after γλ₀ = {self.multiple:g}, ReLU on digits"
        yield kit.at_most("relu_flatness", law.relu_flatness, seen.relu_end, each=True, label=label)

    def rivals(self, setting, law):
        yield kit.rival(
            "divergence at 2/λ₀",
            "descent on the linearized network diverges there",
            id="diverges_at_two",
            relu_thrown=0.0,
        )

    def controls(self, seen):
        lazy = seen.isel(relu=0, drop=True)
        yield kit.control(
            "networks linearized at their start",
            "a linearized network keeps the kernel of its start",
            relu_flatness=xarray.DataArray(np.array(self.multiples), dims="relu"),
        )
        yield kit.control(
            f"ReLU networks at γλ₀ = {LAZY:g}",
            "below 2/λ₀ the loss does not rise",
            id="lazy_relu",
            **{name: lazy[name] for name in self.ragged},
        )

    def figure(self, law, seen, rivals):
        yield kit.panel(
            "ReLU on digits: where training ends is empirical",
            "γλ₀",
            "loss at the end / at the start",
            *(
                kit.observed_curve(self.multiples, seen.relu_loss[i], name, shade=float(i))
                for i, name in enumerate(("raw pixels", "centred pixels"))
            ),
            kit.context_curve((12, 12), (0, 1), "12", kind="dashed"),
            log="x",
        )
