"""The interval of a check against its margin, as a graphic in the line of a table."""

import math

from markupsafe import Markup, escape

from steepest.core.checks import Check

WIDTH = 132
HEIGHT = 18


def bar(check: Check) -> Markup:
    """A band for the margin, a line for the interval, a dot for the mean and a tick for the prediction.

    A margin that is open to one side reaches the edge of the graphic. Nothing is drawn of a check without numbers.
    """
    interval = check.interval
    margin = check.margin
    ends = [interval.low, interval.high, margin.low, margin.high, check.predicted, check.measured]
    finite = [end for end in ends if math.isfinite(end)]
    if not (math.isfinite(check.measured) and finite):
        return Markup("")
    low = min(finite)
    high = max(finite)
    pad = 0.18 * (high - low) or 0.5 * abs(high) or 1.0

    def place(value: float) -> float:
        share = (min(max(value, low - pad), high + pad) - low + pad) / (high - low + 2 * pad)
        return round(3 + share * (WIDTH - 6), 1)

    left = 0 if margin.low == -math.inf else place(margin.low)
    right = WIDTH if margin.high == math.inf else place(margin.high)
    start = place(interval.low)
    end = place(interval.high)
    middle = HEIGHT // 2
    return Markup(
        f'<svg class="bar {check.verdict}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="interval {escape(_RELATION[check.verdict])} the margin">'
        f'<path class="axis" d="M0 {middle}H{WIDTH}"/>'
        f'<rect class="margin" x="{left}" y="2" width="{round(max(right - left, 2), 1)}" height="{HEIGHT - 4}"/>'
        f'<path class="predicted" d="M{place(check.predicted)} 2V{HEIGHT - 2}"/>'
        f'<path class="interval" d="M{start} {middle}H{end}M{start} {middle - 3}v6M{end} {middle - 3}v6"/>'
        f'<circle class="measured" cx="{place(check.measured)}" cy="{middle}" r="2.6"/></svg>'
    )


_RELATION = {
    "holds": "inside",
    "fails": "outside",
    "inconclusive": "partly inside",
    "out-of-range": "beside",
}
