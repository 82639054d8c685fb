"""Training makes class means the source of outliers in feature and error covariances.

The share of the outliers that class means carry rises in training at every layer. In the last layer class means carry
nearly all of the outliers. For features the share of class means rises with depth. At every layer the features have a
covariance H, and the errors that all labels would send back have a covariance Δ. Both covariances are split, exactly,
into a part from class means and the variation around them; this shows what their largest eigenvalues consist of.
Without centring, features have one even larger eigenvalue, which belongs to the mean that all classes share. In
untrained networks, class means carry a third of the outliers of the last features, and more in the first layer.
"""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.curvature._trained import Lanes, Setting, Training, lanes
from steepest.measurement.quantities import error_parts, explained, feature_parts, softmax

# of the outliers, at least, that class means carry in the last hidden layer of a trained network; for errors
# an untrained one has about 0.77, from which 0.8 would not tell it
SHARE = 0.85
KINDS = ("features", "errors")
GROUPS = ("largest", "next C − 1")  # of the eigenvalues of the features' second moment
PARTS = ("common mean", "class means")  # of such a group


@kit.claim
class ClassCovariances(kit.Claim[Setting]):
    """ReLU networks on the digits, cross-entropy with weight decay, trained past zero error."""

    classes: Annotated[int, kit.Within(3, 10)] = kit.param(
        10, "C", scope=kit.between(7, 10, "with five the features rise less than networks differ")
    )
    seeds: kit.Seeds = kit.param(8, "independent networks, each with images of its own")
    n: Annotated[int, kit.Within(30, 450)] = kit.param(300, "images", scope=kit.between(250, 400))
    width: kit.Count = kit.param(
        32, "neurons in each hidden layer", unit="neurons", scope=kit.between(24, 48)
    )
    depth: Annotated[int, kit.Within(2)] = kit.param(
        4,
        "hidden layers",
        unit="layers",
        scope=kit.choices(
            3, 4, 5, why="two are hardly an order, and each rise is smaller with more"
        ),
    )
    lr: kit.Positive = kit.param(
        0.05,
        "first step size, with momentum 0.9; lowered tenfold after each third",
        scope=kit.between(0.04, 0.06),
    )
    decay: kit.Positive = kit.param(
        0.02,
        "weight decay",
        scope=kit.between(0.015, 0.025, "it takes from features what is around class means"),
    )
    batch: kit.Count = kit.param(32, "images in a batch", scope=kit.between(24, 40))
    steps: kit.Count = kit.param(
        900, "steps of training", unit="steps", scope=kit.between(900, 1500)
    )

    kind = "empirical law"
    says = {
        "Training makes class means the source of outliers": "learned",
        "In the last layer class means carry nearly all of the outliers": "last_layer",
        "For features the share of class means rises with depth": "features_by_depth",
    }
    tiny = {"classes": 3, "seeds": 3, "n": 30, "width": 8, "depth": 2, "batch": 10, "steps": 200}
    full = {"seeds": 10, "n": 450, "width": 64, "steps": 3000}
    out_of_scope = {"steps": 5, "seeds": 3}

    def axes(self):
        return {
            "what": KINDS,
            "layer": tuple(f"layer {k + 1}" for k in range(self.depth)),
            "moment": ("start", "end"),
            "group": GROUPS,
            "part": PARTS,
        }

    def setting(self, key):
        training = Training(self.width, self.depth, self.lr, self.decay, self.batch, self.steps)
        return Setting(training, lanes(key, (self.classes,), self.seeds, self.n))

    def predict(self, setting):
        return kit.law(
            share=("what", [1.0, 1.0]),  # of the outliers of the last layer
            by_depth=("layer", np.arange(self.depth)),  # places in an order
            by_training=("moment", [0, 1]),
            # ‖μ‖² is the largest eigenvalue of μμᵀ + Σ where it exceeds all of Σ's, which then follow
            carried=("group part", np.eye(2)),
        )

    def observe(self, setting, key):
        training, all_lanes = setting
        weights, _, error = training(all_lanes, np.array([0, self.steps]))

        def split(weights: jax.Array, lanes: Lanes, again: kit.Key) -> tuple:
            """Parts with the true classes at the start and at the end, and with shuffled ones at the end."""
            shuffled = jax.vmap(jax.random.permutation)(again, lanes.y)
            moments = jnp.stack([weights[:, 0], weights[:, 1], weights[:, 1]])
            labels = jnp.stack([lanes.y, lanes.y, shuffled])
            lanes = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), lanes)
            one = lambda job: self.parts(training, *job)
            return jax.lax.map(lambda jobs: jax.lax.map(one, jobs), (moments, lanes, labels))

        split_parts = kit.compiled(split)(weights, all_lanes, kit.keys(key, self.seeds))
        parts = jax.tree.map(np.asarray, split_parts)
        worlds = [tuple(part[i] for part in parts) for i in range(3)]
        features = worlds[1][0].swapaxes(0, 1)[:, :, -1]  # (part, seed, q, q), last layer
        spectrum = lambda matrices: np.linalg.eigvalsh(matrices)[:, ::-1][:, : 2 * self.classes]
        start, end, random = (("what seed layer", self.shares(world)) for world in worlds)
        return kit.seen(
            **self.without_centring(training, weights, all_lanes, kit.numpy_generator(key)),
            error=("seed", error[:, -1]),
            start=start,
            end=end,
            random=random,
            spectrum=("seed rank", spectrum(features.sum(0))),
            of_means=("seed rank", spectrum(features[0])),
        )

    def without_centring(
        self, training: Training, weights: jax.Array, all_lanes: Lanes, rng: np.random.Generator
    ) -> dict[str, tuple[str, NDArray]]:
        """Return what carries the eigenvalues of second moments, at the end and in four other worlds.

        Args:
            training: whose networks are looked at.
            weights: at the start and at the end, shape ``(seeds, 2, p)``.
            all_lanes: images and classes.
            rng: for shuffled classes.
        """

        def hidden(w: jax.Array, x: jax.Array) -> jax.Array:
            return jnp.stack(training.net.preactivations(training.unflatten(w), x)[:-1])

        over_moments = jax.vmap(hidden, (0, None))
        before = np.asarray(kit.compiled(jax.vmap(over_moments))(weights, all_lanes.x))
        start, end = np.maximum(before, 0).swapaxes(0, 1)  # (seed, layer, n, q)
        y = np.asarray(all_lanes.y)
        shuffled = rng.permuted(y, axis=1)
        worlds = {
            "carried": (end, y),
            "carried_at_start": (start, y),
            "carried_of_random": (end, shuffled),
            "carried_before": (before[:, 1], y),
        }
        return {
            name: (
                "seed group part",
                np.array(
                    [
                        carried(rows, labels, self.classes)
                        for rows, labels in zip(*world, strict=True)
                    ]
                ),
            )
            for name, world in worlds.items()
        }

    def parts(
        self, training: Training, w: jax.Array, lane: Lanes, y: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Parts of H and of Δ at each hidden layer, shapes ``(part, layer, q, q)``."""
        params = training.unflatten(w)
        c = self.classes
        z = training.net.preactivations(params, lane.x)
        p = softmax(z[-1][:, :c])
        delta = p[:, None] - jnp.eye(c)  # p − e_c' for every label c'
        above = params[-1]["w"][:c]  # of the outputs, (n, C, C)
        features = []
        errors = []
        for i in range(self.depth - 1, -1, -1):
            delta = (delta @ above) * (z[i] > 0)[:, None]  # Wᵀ, then the gates of ReLU
            above = params[i]["w"]
            features.insert(0, jnp.stack(feature_parts(jax.nn.relu(z[i]), y, c)))
            errors.insert(0, jnp.stack(error_parts(delta, p / len(p), y)))
        return jnp.stack(features, 1), jnp.stack(errors, 1)

    def shares(self, parts: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Shares of the outliers of H and of Δ that means carry: class means, with those of pairs for Δ."""
        features, errors = (list(part.swapaxes(0, 1)) for part in parts)
        top = self.classes - 1
        return np.stack(
            [explained(features, features[:1], top), explained(errors, errors[:2], top)]
        )

    def run_conditions(self, observed):
        largest = observed["error"].max()
        yield kit.assume("largest training error", largest, "<=", 0.01, "choose more --steps")

    def derive(self, law, seen):
        shares = {f"of_{kind}": seen.end.sel(what=kind, drop=True) for kind in KINDS}
        if "start" not in seen:
            return shares
        # of that layer, of features or of errors, that gains the least
        least = (seen.end - seen.start).min(("what", "layer"), skipna=False)
        gain = xarray.concat([xarray.zeros_like(least), least], "moment")
        return {**shares, "gain": gain.assign_coords(moment=law.moment)}

    def judge(self, law, seen):
        checks = [
            kit.follows(
                "last_layer",
                law.share,
                seen.end.isel(layer=-1, drop=True),
                (SHARE, 2 - SHARE),
                label="share of the class means in the outliers of the last layer",
            ),
            *(
                kit.ranks(
                    f"{kind}_by_depth",
                    law.by_depth,
                    seen[f"of_{kind}"],
                    over="layer",
                    label=f"{kind}: share of the class means by layer",
                )
                for kind in KINDS
            ),
        ]
        if "gain" in seen:
            learned = kit.ranks(
                "learned",
                law.by_training,
                seen.gain,
                over="moment",
                label="share of the class means by training, in the layer that gains the least",
            )
            checks.append(learned)
        if "carried" in seen:
            checks.append(
                kit.follows(
                    "common_mean",
                    law.carried,
                    seen.carried,
                    1 - SHARE,
                    absolute=True,
                    label="features without centring: shares of eigenvalues",
                )
            )
        return checks

    def rivals(self, setting, law):
        yield kit.rival(
            "any grouping of the images would do",
            "there are C means, too",
            id="any_grouping",
            share=(self.classes - 1) / (self.n - 1),
        )
        yield kit.rival(
            "early layers see classes best",
            "they are next to the images",
            id="early_layers",
            by_depth=("layer", law.by_depth.values[::-1]),
        )
        yield kit.rival(
            "class means carry as much in an untrained network",
            "random layers keep the classes that the images have",
            id="given",
            by_training=xarray.zeros_like(law.by_training),
        )
        yield kit.rival(
            "class means carry the largest eigenvalue as well",
            "outliers come from class means",
            carried=("group part", [[0.0, 1.0], [0.0, 1.0]]),
        )
        yield kit.rival(
            "the common mean has one part in C of each",
            "class means end orthogonal and equally long, and then C eigenvalues are equal",
            carried=("group part", [[1 / self.classes, 1 - 1 / self.classes]] * 2),
        )

    def controls(self, seen):
        yield kit.control(
            "as at the start",
            "nothing has been learned",
            id="start",
            end=seen.start,
            **renamed(seen, "carried_at_start"),
        )
        yield self.random_classes(seen)
        yield from (
            kit.control(
                "layers before their rectifiers",
                "the images are centred, and what is linear in them has no mean",
                **carried_before,
            )
            for carried_before in [renamed(seen, "carried_before")]
            if carried_before
        )

    def random_classes(self, seen: xarray.Dataset) -> kit.Control:
        """Return the control of shuffled classes."""
        return kit.control(
            "random classes",
            "means over random groups are not class means",
            end=seen.random,
            **renamed(seen, "carried_of_random"),
        )

    def figure(self, law, seen, rivals):
        layer = np.arange(1, self.depth + 1)
        worlds = (("end", "trained"), ("start", "at the start"), ("random", "random classes"))
        titles = ("Class means make the outliers of features …", "… and of backpropagated errors")
        shares = []
        for kind, title in zip(KINDS, titles, strict=True):
            curves = [
                kit.observed_curve(layer, seen[name].sel(what=kind), label, shade=0.5 * i)
                for i, (name, label) in enumerate(worlds)
                if name in seen
            ]
            ends = (
                kit.predicted_curve(layer[[0, -1]], (1, 1), "all"),
                kit.rival_curve(layer[[0, -1]], (0, 0), "chance"),
            )
            across = ("hidden layer", "share of the C − 1 largest eigenvalues")
            shares.append(kit.panel(title, *across, *curves, *ends))
        rank = np.arange(1, seen.sizes["rank"] + 1)
        both = (("spectrum", "H", 0.0), ("of_means", "class means", 0.7))
        last = [
            kit.observed_curve(rank, np.maximum(seen[k], 1e-12), name, shade=shade)
            for k, name, shade in both
        ]
        yield from shares
        yield kit.panel(
            "Features, last layer", "rank", "eigenvalue", *last, log="y", ylim=(1e-6, None)
        )


def renamed(seen: xarray.Dataset, name: str) -> dict[str, xarray.DataArray]:
    """Return what another world's eigenvalues are carried by, as ``carried``; nothing where it was not measured."""
    return {"carried": seen[name]} if name in seen else {}


def carried(features: NDArray, y: NDArray, classes: int) -> NDArray:
    """Return what carries the largest eigenvalue of second moments and the next C − 1, shape ``(group, part)``.

    Along a unit eigenvector v the eigenvalue is ``⟨v, μ⟩² + Avg_c ⟨v, μ_c − μ⟩²`` and the variance within classes. The
    largest is that of the layer where the first part has the smallest share, the others are those of the last layer.

    Args:
        features: of each layer, shape ``(layers, n, q)``.
        y: classes, equally many examples of each, shape ``(n,)``.
        classes: C.
    """
    shares = np.empty((len(features), 2, 2))
    for layer, rows in enumerate(features):
        values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
        along = rows @ vectors[:, ::-1][:, :classes]
        means = np.stack([along[y == c].mean(0) for c in range(classes)])
        # ⟨v, μ⟩² and Avg_c ⟨v, μ_c − μ⟩² of each eigenvector, (2, C)
        parts = np.stack([means.mean(0) ** 2, means.var(0)])
        largest = values[::-1][:classes]
        shares[layer, 0] = parts[:, 0] / largest[0]
        shares[layer, 1] = parts[:, 1:].sum(1) / largest[1:].sum()
    least = shares[:, 0, 0].argmin()
    return np.stack([shares[least, 0], shares[-1, 1]])
