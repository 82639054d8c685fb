"""Contrastive training helps the mean classifier, and then five labels a class are nearly enough.

The training sees no labels, only triples: two images of one class and one of any class. A trained representation has at
most three quarters of the mean classifier's loss of a random one with equal norm. On images that the training has not
seen, class means of five labels have at least 96 % of the accuracy of class means of a hundred.
"""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.claims.bayes_and_transfer._contrastive import (
    FEWEST,
    PIXELS,
    Draws,
    drawn,
    losses,
    zipf,
)
from steepest.claims.bayes_and_transfer.contrastive_few_labels.experiment import (
    few_label_accuracy,
    pair_accuracy,
    triple_loss,
)
from steepest.dynamics import descend, triples
from steepest.measurement.quantities import contrastive
from steepest.nn.types import Values

HELD_OUT = 100  # images of each class on which labels are few
FEW = 5  # labels of each class
DRAWS = 20  # of few labels


@kit.claim
class ContrastiveFewLabels(kit.Claim[Draws]):
    """Linear representations of digits, trained by SGD on a contrastive loss, and random ones of equal norm."""

    per_class: Annotated[int, kit.Within(4, FEWEST - HELD_OUT)] = kit.param(
        20,
        f"images of each class to train on, beside {HELD_OUT} held out",
        unit="images",
        scope=kit.between(12, 30),
    )
    ks: tuple[kit.Count, ...] = kit.param(
        (2, 8), "dimensions k of representations", scope=kit.choices((2, 8), (2, 6))
    )
    steps: kit.Count = kit.param(400, "steps of their training", unit="steps")
    batch: kit.Count = kit.param(128, "fresh triples a step", unit="triples")
    lr: kit.Positive = kit.param(1.0, "step size")
    seeds: kit.Seeds = kit.param(4, "choices of images, matrices and triples")

    kind = "empirical law"
    says = {
        "Contrastive training helps the mean classifier": "trained",
        "five labels a class are nearly enough": "few",
    }
    tiny = {"per_class": 6, "steps": 100, "batch": 64, "seeds": 3}
    full = {"per_class": 40, "ks": (2, 4, 8, 16), "steps": 2000, "batch": 256, "seeds": 10}
    out_of_scope = {"lr": 1e6}

    def axes(self):
        return {"k": self.ks}

    def setting(self, key):
        return drawn(key, self.seeds, self.per_class, max(self.ks), HELD_OUT)

    def predict(self, setting):
        # no theory says how much training helps, or how many labels are enough
        return kit.law(gain=0.75, few=0.96)

    def observe(self, setting, key):
        weights, random, risks = map(
            np.asarray, kit.compiled(self.trained)(setting.images, setting.noise, key)
        )
        rng = kit.numpy_generator(key)
        accuracies = [
            [self.accuracies(w, held, rng) for w in of_seed]
            for of_seed, held in zip(weights, setting.held, strict=True)
        ]
        # every matrix in one list, so that the losses are compiled once
        together = np.concatenate([weights, random], 1).swapaxes(0, 1)
        measured = losses(setting.images, together, zipf(0.0)[None])
        supervised = measured.supervised[..., 0].T
        return kit.seen(
            trained_supervised=("seed k", supervised[:, : len(self.ks)]),
            random_supervised=("seed k", supervised[:, len(self.ks) :]),
            accuracy=("seed k labels", accuracies),
            risks=("seed k end", risks),
        )

    def trained(
        self, images: jax.Array, noise: jax.Array, key: kit.Key
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return trained matrices, random ones of equal norm, and L_un at both ends of the training, by seed and k."""

        def of_seed(inputs: tuple) -> tuple:
            images, noise, key = inputs

            def one(lane: tuple) -> tuple:
                k, key = lane
                columns = jnp.arange(max(self.ks)) < k
                shape = (PIXELS, max(self.ks))
                start = 2 * jax.random.normal(key, shape) / jnp.sqrt(k) * columns
                path = descend(
                    lambda weights: contrastive(images @ weights).un,
                    start,
                    optax.sgd(self.lr),
                    self.steps,
                    record=self.steps,
                    stochastic=triples(triple_loss, images, self.batch),
                    key=key,
                )
                other = noise[:, : shape[1]] * columns
                norms = jnp.linalg.norm(path.params) / jnp.linalg.norm(other)
                return path.params, norms * other, path.risk

            return jax.lax.map(one, (jnp.array(self.ks), jax.random.split(key, len(self.ks))))

        return jax.lax.map(of_seed, (images, noise, jax.random.split(key, self.seeds)))

    def accuracies(self, weights: Values, held: Values, rng: np.random.Generator) -> list[float]:
        """Return accuracies with means of one, of five and of all held-out images of each class."""
        few = [few_label_accuracy(held, weights, labels, DRAWS, rng) for labels in (1, FEW)]
        return [*few, pair_accuracy(held, weights, (held @ weights).mean(1))]

    def run_conditions(self, observed):
        start, end = np.moveaxis(observed["risks"], -1, 0)
        worst = float((end / start).max())
        smaller = "the training does not converge; choose a smaller --lr"
        yield kit.assume("contrastive loss after training over the start", worst, "<", 1, smaller)

    def derive(self, law, seen):
        return {
            "gain": seen.trained_supervised / seen.random_supervised,
            "few": seen.accuracy.isel(labels=1) / seen.accuracy.isel(labels=2),
        }

    def judge(self, law, seen):
        label = "L_sup trained over L_sup random of equal norm"
        yield kit.at_most("trained", law.gain, seen.gain, over="k", label=label)
        label = f"accuracy with {FEW} labels over accuracy with {HELD_OUT}"
        # the interval is ± 0.01
        yield kit.at_least("few", law.few, seen.few, over="k", label=label)

    def controls(self, seen):
        one_label = seen.accuracy.copy()
        one_label[..., 1] = one_label[..., 0]
        yield kit.control("one label in place of five", "one image is no mean", accuracy=one_label)
        yield kit.control(
            "a random matrix in place of the trained one",
            "it was not trained",
            id="random",
            trained_supervised=seen.random_supervised,
        )

    def figure(self, law, seen, rivals):
        accuracy = seen.accuracy.mean("seed").values
        yield kit.panel(
            "Five labels a class do nearly as well as all",
            "labels of each class",
            "accuracy on pairs, held out",
            *(
                kit.observed_curve([1, FEW, HELD_OUT], accuracy[i], f"k = {k}", shade=0.6 * i)
                for i, k in enumerate(self.ks)
            ),
            log="x",
        )
