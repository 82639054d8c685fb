"""What the figure of descent-telescope shows."""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.descent_telescope.experiment import FROZEN, REFERENCES


def panels_of_descent(law: xarray.Dataset, seen: xarray.Dataset) -> tuple[kit.Panel, ...]:
    """Draw the constant over the step size, and what one network keeps to at the smallest step size."""
    one = seen.isel(seed=0, step_size=0)
    frozen = one.isel(reference=FROZEN)
    step = np.arange(1, one.sizes["step"] + 1)
    sizes = law.step_size.values
    on_first = frozen.slack + frozen.reference_risk.isel(step=0) - frozen.reference_risk
    return (
        kit.panel(
            "One example attains 2 − cη, images leave room",
            "η",
            "largest a in the bound",
            kit.predicted_curve(sizes, law.least.values, "2 − 0.408 η"),
            kit.observed_curve(sizes, seen.least.values, "one example", kind="points"),
            kit.observed_curve(sizes, seen.motion.min("seed").values, "networks", shade=0.6),
            kit.rival_curve(sizes, np.full(len(sizes), 2.0), "gradient flow"),
        ),
        _kept(law, frozen, step),
        kit.panel(
            "As if convex, on the features of each step",
            "step",
            "⟨∇R, W − W̄⟩ − (R(W) − R(W̄))",
            kit.observed_curve(step, frozen.slack.values, "features of the step"),
            kit.rival_curve(step, on_first.values, "features of the start"),
            kit.predicted_curve((1, step[-1]), (0, 0), "at least 0"),
        ),
        kit.panel(
            "Convex: distance gained / (η t × risk above W̄)",
            "reference W̄: step of the same descent",
            "smallest over earlier t",
            kit.observed_curve(np.arange(2, step[-1] + 1), seen.convex.values),
            kit.predicted_curve((2, step[-1]), (2, 2), "at least 2"),
            kit.rival_curve((2, step[-1]), (4, 4), "4, sharpest without the term"),
            log="x",
        ),
    )


def _kept(law: xarray.Dataset, frozen: xarray.Dataset, step: np.ndarray) -> kit.Panel:
    """Draw the distance from a reference of one network, and the bound on it."""
    lr = float(frozen.step_size)
    fit = 2 * lr * frozen.reference_risk.cumsum("step")
    spent = lr * frozen.risk.cumsum("step")
    bound = frozen.distance + fit - law.least.sel(step_size=lr) * spent
    return kit.panel(
        "Weights stay near what fits along the way",
        "step",
        f"‖W_t − W̄‖², W̄ {REFERENCES[FROZEN]}",
        kit.observed_curve(step, (frozen.distance + frozen.left).values, "measured"),
        kit.predicted_curve(step, bound.values, "bound"),
    )
