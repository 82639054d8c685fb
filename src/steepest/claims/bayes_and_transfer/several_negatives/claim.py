"""With k negatives a contrastive loss bounds the mean classifier's loss of k + 1 classes, with ties.

The loss is log₂(1 + Σ exp(−v_i)) with v_i = f(x)ᵀ(f(x⁺) − f(x_i⁻)). In the loss of the mean classifier, class means
stand for x⁺ and for each x_i⁻. A negative of x's own class is a tie there. To leading order in f the bound loses
k/(k + 1)² times the variation within x's own class and within the class of each negative, as all v_i share x⁺.
"""

from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.bayes_and_transfer._contrastive import FEWEST, Draws, drawn
from steepest.claims.bayes_and_transfer.several_negatives.experiment import several_negatives
from steepest.measurement.quantities import LOG_TWO
from steepest.nn.types import Values

NEGATIVES = (1, 2, 4, 8)  # at a time


@kit.claim
class SeveralNegatives(kit.Claim[Draws]):
    """Random linear representations of digits in ten classes alike, small and large; negatives are drawn."""

    per_class: Annotated[int, kit.Within(4, FEWEST)] = kit.param(
        20,
        "images that make up each class's distribution",
        unit="images",
        scope=kit.between(12, 30),
    )
    ks: tuple[kit.Count, ...] = kit.param(
        (4, 16, 64),
        "dimensions of representations; the middle one is used for small ones",
        scope=kit.choices((4, 16, 64), (4, 8, 64)),
    )
    amplitudes: tuple[kit.Positive, ...] = kit.param(
        (0.5, 2.0, 4.5),
        "scales a of f = aWᵀx of large representations",
        scope=kit.choices((0.5, 2.0, 4.5), (0.4, 1.8, 4.0)),
    )
    scale: kit.Positive = kit.param(
        0.3, "scale of small representations; the next order of the slack is one per cent here"
    )
    draws: kit.Count = kit.param(
        80_000, "tuples of a small representation, twice as many as of a large one", unit="tuples"
    )
    seeds: kit.Seeds = kit.param(4, "choices of images, matrices and tuples")

    kind = "theorem"
    says = {"a contrastive loss bounds the mean classifier's loss": "several_bound"}
    tiny = {"per_class": 6, "seeds": 3, "draws": 4000}
    full = {"per_class": 40, "seeds": 10}
    out_of_scope = {"scale": 2.0}

    @property
    def middle(self) -> int:
        """Return the dimension of the small representations."""
        return self.ks[len(self.ks) // 2]

    def axes(self):
        return {"negatives": NEGATIVES}

    def setting(self, key):
        return drawn(key, self.seeds, self.per_class, max(self.ks))

    def hypotheses(self, setting):
        yield kit.assume(
            "scale of small representations", self.scale, "<=", 0.5, "an expansion in f"
        )

    def predict(self, setting):
        return kit.law(several=("seed negatives", self.slack(setting, shared=True)))

    def slack(self, setting: Draws, *, shared: bool) -> Values:
        """Return the leading slack of several negatives, ``(seeds, negatives)``.

        The Hessian of log(1 + Σ e^(−v_i)) at zero is diag(p) − ppᵀ with p = 1/(k + 1). The v_i have the covariance
        fᵀΣ_c f, which they share with x⁺, and of its own each has fᵀΣf of its class.

        Args:
            setting: images and matrices.
            shared: whether x⁺ is the same for all v_i.
        """
        forms = [_covariance_forms(f) for f in setting.features(self.middle, self.scale)]
        own_class, any_class = np.transpose(forms)[:, :, None]
        k = np.array(NEGATIVES)
        # 1ᵀ(diag(p) − ppᵀ)1 = k/(k + 1)² for what all v_i share,
        # and the trace is k times that for what each has of its own
        curved = k / (k + 1) ** 2
        return curved * ((own_class if shared else k * own_class) + k * any_class) / (2 * LOG_TWO)

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)

        def measured(k: int, scale: float, draws: int) -> Values:
            features = setting.features(k, scale)
            return np.array([several_negatives(f, NEGATIVES, draws, rng) for f in features])

        small = measured(self.middle, self.scale, self.draws)
        large = np.array(
            [measured(k, scale, self.draws // 2) for k in self.ks for scale in self.amplitudes]
        )
        dims = "representation seed negatives"
        return kit.seen(
            several=("seed negatives", small[:, 0]),
            several_without_own=("seed negatives", small[:, 2]),
            left=(dims, large[:, :, 1]),
            left_without_own=(dims, large[:, :, 2]),
        )

    def judge(self, law, seen):
        label = "loss of k negatives less the loss of class means with ties, large representations"
        yield kit.excluded("several_bound", 0.0, seen.left, label=label)
        label = "slack of k negatives, small representations"
        # the interval is 0.03, the next order at this scale 0.02
        yield kit.follows("several", law.several, seen.several, 0.08, over="negatives", label=label)

    def rivals(self, setting, law):
        yield kit.rival(
            "slack of k negatives k times the slack of one",
            "each of k negatives is a term of the loss",
            id="slack_of_k_negatives_k_times_that_of_one",
            several=law.several.isel(negatives=0, drop=True) * law.negatives,
        )
        yield kit.rival(
            "slack as if each negative had a positive of its own",
            "each v_i has the variance of two examples",
            id="own_positives",
            several=("seed negatives", self.slack(setting, shared=False)),
        )

    def controls(self, seen):
        yield kit.control(
            "negatives of other classes only",
            "as printed; no negative is a tie, and the losses of class means have ties",
            id="negatives_of_other_classes_alone",
            several=seen.several_without_own,
            left=seen.left_without_own,
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "Several negatives share their positive",
            law.several,
            seen.several,
            over="negatives",
            x="negatives at a time k",
            y="loss less the loss of class means [bits]",
            rivals={"a positive each": rivals["own_positives"].several} if rivals else {},
            log="xy",
        )


def _covariance_forms(features: Values) -> Values:
    """Return means of fᵀΣf over equal classes, with Σ of f's own class and with Σ of any class, shape ``(2,)``.

    Args:
        features: shape ``(10, n, k)``.
    """
    centred = features - features.mean(1, keepdims=True)
    # ⟨f(x_i), f(x_j) − μ⟩, (c, i, j), and (c, i, d, j): its mean square over j is fᵀΣf
    own_class = np.einsum("cik,cjk->cij", features, centred)
    any_class = np.einsum("cik,djk->cidj", features, centred)
    return np.array([(own_class**2).mean(), (any_class**2).mean()])
