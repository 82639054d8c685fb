"""One point of the diagram of sam-edge: walks along the valley at one step size and one ρ."""

from dataclasses import dataclass

import numpy as np

from steepest import kit
from steepest.claims.training.sam_edge import experiment, theory
from steepest.kit.points import Arrays, equal, run_in_numpy
from steepest.optimizers import Sam


@dataclass(frozen=True)
class SamEdgePoint(kit.Point):
    """How many steps it takes until curvature has fallen in the valley, and how large gradients are then."""

    lrs: kit.Positive
    radii: kit.Positive
    first: kit.Positive
    curvatures: kit.Positive
    seeds: kit.Seeds

    precision = "float32"
    batched = ("lrs", "radii")
    diagram = {"lrs": "log:0.03:0.4:12", "radii": "log:0.03:0.6:10"}
    base = {"curvatures": (2.7,)}
    labels = {"ratio": "log₂ of steps over the law's"}
    contours = {"fall_predicted": (40.0, "40 steps by theory")}
    diagram_remarks = (
        "Walks along the valley ½eʸx² until its curvature has fallen from 5 to 2.7. Theory follows the curvature in "
        "time, as if a step moved it little: where gradients lag behind it by more than 3 %, points are out of range.",
        "Where walks begin, the curvature is up to 1.3 times the first. Right of the line plain descent would leave "
        "the valley there; nearer to it than a tenth is out of range.",
    )

    @property
    def steepest_start(self) -> float:
        """The largest curvature at which a walk begins."""
        return self.first * experiment.AHEAD[1]

    def hypotheses(self, setting):
        yield kit.assume("largest ηλ in the valley", self.lrs * self.steepest_start, "<", 1.8)
        yield kit.assume(
            "lag of gradients behind the curvature",
            float(theory.lag(np.array([self.first, self.curvatures]), self.lrs, self.radii).max()),
            "<",
            theory.LAG,
        )
        yield kit.assume("part that is left of curvature", self.curvatures / self.first, "<", 0.9)

    def predict(self, setting):
        ends = (self.first, np.array(self.curvatures), self.lrs, self.radii)
        return kit.Prediction(
            fall=theory.steps_to_fall(*ends),
            gradient=Sam(self.radii).gradient(self.lrs, self.curvatures),
        )

    def observe(self, setting, key):
        shapes = {"fall": (self.seeds,), "gradient": (self.seeds,)}
        return run_in_numpy(self.walks, shapes, key, self.lrs, self.radii)

    def walks(self, rng: np.random.Generator, eta: float, rho: float) -> dict[str, kit.Values]:
        """Return steps and sizes of gradients of each walk."""
        curvatures = np.array([self.first, self.curvatures])
        etas = np.full(self.seeds, eta)
        rhos = np.full(self.seeds, rho)
        # a walk that has arrived goes on until all have, and may end on the floor, where it has no slope
        with np.errstate(all="ignore"):
            met = experiment.fall(rng, etas, rhos, curvatures)
        return {"fall": met.steps[:, 0], "gradient": met.gradients[:, 0]}

    def judge(self, predicted, observed):
        yield equal(
            "fall",
            predicted["fall"],
            observed["fall"],
            0.05,  # fewer by up to 2 % in the scope, as gradients lag
            label="steps until curvature has fallen",
        )
        yield equal(
            "gradient",
            predicted["gradient"],
            observed["gradient"],
            0.05,  # exact while curvature stands
            label="size of gradients then",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"ratio": float(np.log2(observed["fall"].mean() / predicted["fall"]))}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"lrs", "radii"}:
            return ()
        line = np.full(2, 2 / self.steepest_start)
        radii = np.array([1e-6, 1e6])
        ends = (line, radii) if x == "lrs" else (radii, line)
        return (kit.predicted_curve(*ends, "ηλ = 2"),)
