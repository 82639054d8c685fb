"""Numbers, intervals and prose as a page shows them."""

import math
import re
import textwrap
from typing import Any

from markupsafe import Markup, escape

from steepest.core.checks import Check, Interval
from steepest.site.drawing import power


def number(value: Any, digits: int = 4) -> str:
    """A number as a reader expects it; anything else as it is.

    >>> number(0.98724), number(8.59e-15), number(-2.0), number(1000), number((1.0, 2.5)), number(float("nan"))
    ('0.9872', '8.59×10⁻¹⁵', '−2', '1000', '1, 2.5', 'not finite')
    """
    if isinstance(value, tuple | list):
        return ", ".join(number(one, digits) for one in value)
    if value is None:
        return "none"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "not finite" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if isinstance(value, int) and abs(value) < 10**7:
        return str(value).replace("-", "−")
    rounded = float(f"{value:.{max(digits, len(str(int(abs(value)))))}g}")
    if value == 0 or 1e-3 <= abs(rounded) < 1e5:
        return f"{rounded:.12g}".replace("-", "−")
    return power(value, digits)


def ends(interval: Interval, coarse: float = 0.0) -> str:
    """Both ends of an interval, with digits enough to tell them apart, but no finer than ``coarse``.

    >>> ends(Interval(0.99999912, 1.0000004)), ends(Interval(0.99999912, 1.0000004), coarse=0.01)
    ('[0.99999912, 1.0000004]', '[1, 1]')
    """
    low = interval.low
    high = interval.high
    if not (math.isfinite(low) and math.isfinite(high)):
        return "not finite" if math.isnan(low + high) else f"[{number(low)}, {number(high)}]"
    fine = max(high - low, coarse)
    largest = max(abs(low), abs(high))
    digits = 4
    if fine > 0 and largest > 0:
        digits = min(8, max(4, math.ceil(math.log10(largest / fine)) + 2))
    return f"[{number(low, digits)}, {number(high, digits)}]"


def found(check: Check) -> str:
    """The interval of a check; digits that are small beside the margin are left out."""
    width = check.margin.high - check.margin.low
    return ends(check.interval, width / 50 if math.isfinite(width) else 0.0)


def allowed(margin: Interval) -> str:
    """The values that count as agreement.

    >>> allowed(Interval(float("-inf"), 2.0)), allowed(Interval(0.9, 1.1)), allowed(Interval(5e-324, float("inf")))
    ('≤ 2', '0.9 to 1.1', '> 0')
    """
    if margin.high == math.inf:
        tiny = 0 < margin.low < 1e-300
        return "> 0" if tiny else f"≥ {number(margin.low)}"
    if margin.low == -math.inf:
        return f"≤ {number(margin.high)}"
    low, high = ends(margin)[1:-1].split(", ")
    return f"{low} to {high}"


def duration(seconds: float) -> str:
    """Wall time.

    >>> duration(0.31), duration(52.2), duration(4000)
    ('0.3 s', '52 s', '66 min 40 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    return f"{minutes} min {remainder} s" if minutes else f"{remainder} s"


def prose(text: str) -> Markup:
    """A clean docstring's paragraphs: indented ones are set as code, words between backquotes too."""
    parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    return Markup("\n").join(_paragraph(part) for part in parts)


def _paragraph(text: str) -> Markup:
    if text.startswith("    "):
        return Markup("<pre><code>{}</code></pre>").format(textwrap.dedent(text).rstrip())
    return Markup("<p>{}</p>").format(ticks(" ".join(text.split())))


def ticks(text: str) -> Markup:
    """A line of text: words between backquotes are code, indices and exponents are set as such.

    >>> str(ticks("`a_b` where C_W² > ρ^(l+1), λ_max, not x_max"))
    '<code>a_b</code> where C<sub>W</sub>² &gt; ρ<sup>l+1</sup>, λ<sub>max</sub>, not x_max'
    >>> str(ticks("ℓ_{2/L} of W_{l+1}, Σ_{i<d} s_i"))
    'ℓ<sub>2/L</sub> of W<sub>l+1</sub>, Σ<sub>i&lt;d</sub> s<sub>i</sub>'
    >>> str(ticks("η(aN^{3/2} + bN), e^{−λ_i t}"))
    'η(aN<sup>3/2</sup> + bN), e<sup>−λ<sub>i</sub> t</sup>'
    """
    pieces = re.split(r"`{1,2}([^`]+)`{1,2}", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if odd % 2 else _indexed(piece)
        for odd, piece in enumerate(pieces)
    )


def _indexed(text: str) -> Markup:
    letter = "[A-Za-z0-9α-ωΑ-Ω∞∥⊥*]"
    end = "(?![A-Za-z0-9_])"
    symbol = r"((?<![A-Za-z0-9_])[^\W\d_]|[‖∥|∫])"
    safe = re.sub(rf"{symbol}_\{{([^{{}}]{{1,20}})\}}", r"\1<sub>\2</sub>", str(escape(text)))
    safe = re.sub(rf"{symbol}_({letter}){end}", r"\1<sub>\2</sub>", safe)
    safe = re.sub(rf"([α-ωΑ-Ω])_(min|max){end}", r"\1<sub>\2</sub>", safe)
    raised = re.sub(
        rf"(?<=[\w)>])\^(?:\(([^()\s]{{1,8}})\)|({letter}){end})", r"<sup>\1\2</sup>", safe
    )
    return Markup(re.sub(r"(?<=[\w)>‖∥|])\^\{([^{}]{1,24})\}", r"<sup>\1</sup>", raised))


def meaning(comment: str) -> tuple[str, str]:
    """A field's comment, split into words and unit.

    >>> meaning("hidden width m [neurons]"), meaning("ratio [1]"), meaning("a name")
    (('hidden width m', 'neurons'), ('ratio', ''), ('a name', ''))
    """
    parts = re.fullmatch(r"(.*?)\s*\[([^\[\]]+)\]", comment.strip())
    if not parts:
        return comment.strip(), ""
    return parts[1], "" if parts[2] == "1" else parts[2]
