"""What the figure of logistic-max-margin shows."""

import xarray

from steepest import kit
from steepest.claims.implicit_bias.logistic_max_margin.experiment import PLAIN


def panels_of_flows(law: xarray.Dataset, seen: xarray.Dataset) -> tuple[kit.Panel, ...]:
    """Draw the margin on breast cancer on two clocks, and growth and direction of the synthetic flows.

    A curve over plain time ends where the other begins: under each other one would not be seen.
    """
    best = float(law.real_margin)
    clock = seen.real_clock.values
    ratio = seen.real_margins.values / best
    log_time = seen.real_log_time.values
    plain = log_time <= PLAIN
    ends = (clock[0], clock[-1])
    times = law["log_time"].values
    gap = seen.gap.mean("seed").values
    return (
        kit.panel(
            "Breast cancer: the margin on the risk clock",
            "risk clock s = ∫ R dt",
            "margin / γ̂",
            kit.observed_curve(clock, ratio, "flow"),
            kit.predicted_curve(ends, (1, 1), "hard margin"),
            kit.rival_curve(ends, (0.99, 0.99), "0.99"),
            log="x",
            ylim=(-1, 1.1),
        ),
        kit.panel(
            "At t = 10⁶ plain time has not even separated the data",
            "log t",
            "1 − margin / γ̂",
            kit.context_curve(log_time[plain], 1 - ratio[plain], "plain time"),
            kit.observed_curve(log_time[~plain], 1 - ratio[~plain], "risk clock"),
            kit.context_curve((PLAIN, PLAIN), (1e-3, 1e3), "t = 10⁶", kind="dashed", shade=1.0),
            kit.predicted_curve((log_time[0], log_time[-1]), (1, 1), "separated"),
            log="xy",
        ),
        kit.curves(
            "Synthetic sets: ‖w‖ grows like log t / γ̂",
            law.growth.mean("seed"),
            seen.growth,
            over="later",
            x="log t",
            y="growth of ‖w‖",
            log="xy",
        ),
        kit.panel(
            "Synthetic sets: the direction is late",
            "log t",
            "‖w/‖w‖ − ŵ‖, mean",
            kit.observed_curve(times, gap, "flow", kind="points"),
            kit.predicted_curve(times, gap[-1] * times[-1] / times, "1/log t"),
            log="xy",
        ),
    )
