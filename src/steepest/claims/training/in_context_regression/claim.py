"""Linear attention trained on random regressions answers by one preconditioned gradient step.

Training starts from small weights. The preconditioner is Γ⁻¹, with Γ = (1 + 1/N)Λ + (tr Λ/N) I for prompts of N
Gaussian examples with covariance Λ. Γ allows for the noise of a sample of N examples: in short prompts the layer steps
less far than Newton's method would, above all along directions of small variance. The layer's risk, half of its mean
squared error, is ½(tr Λ − tr ΛΓ⁻¹Λ).
"""

import numpy as np

from steepest import kit
from steepest.claims.training.in_context_regression import experiment, theory
from steepest.claims.training.in_context_regression.experiment import Sizes
from steepest.claims.training.in_context_regression.point import InContextRegressionPoint

WEIGHTS = 0.06
"""Margin of weights, and what they may still move while the step falls from a half to zero."""


@kit.claim
class InContextRegression(kit.Claim[None]):
    """One head of linear attention, trained on prompts of Gaussian examples with linear labels."""

    variances: tuple[kit.Positive, ...] = kit.param(
        (1.6, 1.0, 0.6, 0.4),
        "eigenvalues of Λ",
        scope=kit.choices((1.6, 1.0, 0.6, 0.4), (1.2, 0.8, 0.5), (1.4, 1.1, 0.9, 0.7, 0.5)),
    )
    lengths: tuple[kit.Count, ...] = kit.param(
        (5, 12, 30),
        "N, in a prompt",
        unit="examples",
        scope=kit.choices((5, 12, 30), (4, 8, 16), (5, 15, 40)),
    )
    scale: kit.Positive = kit.param(0.4, "σ, norm of both weights", scope=kit.between(0.3, 0.45))
    lr: kit.Positive = kit.param(0.015, "largest step size of Adam", scope=kit.between(0.01, 0.02))
    steps: kit.Count = kit.param(
        1000, "steps of each training", unit="steps", scope=kit.between(1000, 2000)
    )
    examples: kit.Count = kit.param(
        1000, "examples in all prompts of a step", unit="examples", scope=kit.between(1000, 1500)
    )
    prompts: kit.Count = kit.param(10_000, "prompts for the risk of each training", unit="prompts")
    seeds: kit.Seeds = kit.param(8, "trainings")

    kind = "theorem"
    says = {"answers by one preconditioned gradient step": ("weights", "risk")}
    tiny = {"lengths": (4, 8), "steps": 60, "examples": 80, "prompts": 200, "seeds": 3}
    full = {"steps": 6000, "examples": 4000, "prompts": 100_000}
    out_of_scope = {"scale": 2.0, "steps": 20, "seeds": 3}
    point = InContextRegressionPoint

    def axes(self):
        return {"length": self.lengths, "variance": self.variances}

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        variances = np.array(self.variances)
        largest = theory.gammas(variances, min(self.lengths)).max()
        yield kit.assume(
            "σ²‖Γ‖√d",
            float(self.scale**2 * largest * len(variances) ** 0.5),
            "<",
            2,
            "the theorem is of small starts: choose a smaller --scale",
        )

    def predict(self, setting):
        variances = np.array(self.variances)
        inverse = [1 / theory.gammas(variances, length) for length in self.lengths]
        return kit.law(
            weights=("length variance", np.array(inverse)),
            risk=("length", self.risks(np.array(inverse))),
        )

    def risks(self, weights: kit.Values) -> kit.Values:
        """Return the risk that weights ``(lengths, d)`` have at each length."""
        variances = np.array(self.variances)
        pairs = zip(self.lengths, weights, strict=True)
        return np.array([theory.risk(variances, length, weight) for length, weight in pairs])

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        weights, halfway, risk = self.trained(rng, heavy=False)
        heavy_weights, _, heavy_risk = self.trained(rng, heavy=True)
        return kit.seen(
            weights=("seed length variance", weights),
            halfway=("seed length variance", halfway),
            risk=("seed length", risk),
            heavy_weights=("seed length variance", heavy_weights),
            heavy_risk=("seed length", heavy_risk),
        )

    def trained(self, rng: np.random.Generator, *, heavy: bool) -> tuple[kit.Values, ...]:
        """Return diagonals of M at the end and halfway, ``(seeds, lengths, d)``, and risks ``(seeds, lengths)``."""
        variances = np.array(self.variances)
        # the step that heavy tails lead to is far off, and need not be known as well
        examples = self.examples // 2 if heavy else self.examples
        diagonals = []
        earlier = []
        risks = []
        for length in self.lengths:
            sizes = Sizes(self.seeds, examples // length, length)
            first = experiment.start(rng, self.seeds, len(variances), self.scale)
            trained = experiment.train(
                rng, variances, sizes, first, self.lr, self.steps, heavy=heavy
            )
            for kept, weights in ((diagonals, trained.last), (earlier, trained.halfway)):
                matrix = experiment.preconditioner(weights)
                kept.append(np.diagonal(matrix, axis1=1, axis2=2))
            of_risk = sizes._replace(batch=self.prompts)
            risks.append(experiment.risk(rng, variances, of_risk, trained.last, heavy=heavy))
        return np.stack(diagonals, 1), np.stack(earlier, 1), np.stack(risks, 1)

    def run_conditions(self, observed):
        change = observed["halfway"].mean(0) / observed["weights"].mean(0) - 1
        yield kit.assume(
            "largest change of a mean weight in the last half of the steps",
            np.abs(change).max(),
            "<",
            WEIGHTS,
            "trainings must have ended: choose more --steps",
        )

    def judge(self, law, seen):
        yield kit.follows(
            "weights",
            law.weights,
            seen.weights,
            WEIGHTS,  # exact in the limit; of that the interval takes 3 %
            label="weight along each direction of Λ",
        )
        yield kit.follows(
            "risk",
            law.risk,
            seen.risk,
            0.08,  # exact in the limit; of that the interval takes 4 %
            label="risk on fresh prompts",
        )

    def rivals(self, setting, law):
        variances = np.array(self.variances)
        lengths = np.array(self.lengths)[:, None]
        ones = np.ones((len(lengths), len(variances)))
        trace = variances.sum() / lengths
        scalars = [theory.best_scalar(variances, length) for length in self.lengths]

        def step(id: str, why: str, label: str, weights: kit.Values) -> kit.Rival:
            return kit.rival(
                label,
                why,
                id=id,
                weights=("length variance", weights),
                risk=("length", self.risks(weights)),
            )

        yield step(
            "newton", "one step of Newton's method solves least squares", "Λ⁻¹", ones / variances
        )
        yield step(
            "scalar",
            "one step of descent has one step size",
            "the best multiple of I",
            ones * np.array(scalars)[:, None],
        )
        yield step(
            "no_trace",
            "Λ is known, but for a factor, from N examples",
            "Λ⁻¹/(1 + 1/N)",
            ones / ((1 + 1 / lengths) * variances),
        )
        yield step(
            "ridge",
            "a prior adds a multiple of I to Λ, and nothing else",
            "(Λ + (tr Λ/N) I)⁻¹",
            1 / (variances + trace),
        )

    def controls(self, seen):
        yield kit.control(
            "inputs of the same Λ, four of five of them zero",
            "Γ has the fourth moments of Gaussian inputs in it",
            id="heavy_tails",
            weights=seen.heavy_weights,
            risk=seen.heavy_risk,
        )

    def figure(self, law, seen, rivals):
        wrong = (
            {"best multiple of I": rivals["scalar"].risk, "Λ⁻¹/(1 + 1/N)": rivals["no_trace"].risk}
            if rivals
            else {}
        )
        yield kit.curves(
            "In short prompts it steps less far, above all along small variances",
            law.weights,
            seen.weights,
            over="length",
            by="variance",
            x="examples N in a prompt",
            y="weight along a direction",
            name="variance {}",
            log="xy",
        )
        yield kit.curves(
            "Its risk is the least that one such step can have",
            law.risk,
            seen.risk,
            over="length",
            x="examples N in a prompt",
            y="risk",
            rivals=wrong,
            log="xy",
        )
