"""What a coordinate check says: whether wide networks are lazy, stable or learn as µP wants, and what to change."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from numpy.typing import NDArray

from steepest.core.checks import decide
from steepest.core.intervals import Interval
from steepest.core.words import Verdict
from steepest.measurement._report import Finding, FindingId

MOST = 5
SHOWN = 3  # names of layers in a line
# Powers of wide networks are multiples of one half: a power that lies halfway to the next is not decided.
HALFWAY = 0.25
LEVEL = Interval(-HALFWAY, HALFWAY)
FIRST_CHANGE = "change of the outputs by step {}"

Role = Literal["input", "hidden", "output", "fixed", ""]
Trend = Literal["grows", "falls", "level", "undecided", "none"]
Updates = Literal["even", "gradient", "mixed"]
"""Whether all entries of an array change by one amount, as Adam's do first, or in proportion to the gradient."""


class Power(NamedTuple):
    """A fitted power of the width.

    Attributes:
        layer: what it is of.
        value: the power, mean over the seeds; NaN where sizes are zero or not finite.
        interval: 95 %, over the seeds or of the fit.
        sizes: to which it was fitted, shape ``(seeds, widths)``.
    """

    layer: str
    value: float
    interval: tuple[float, float]
    sizes: NDArray

    @property
    def trend(self) -> Trend:
        """Return whether the power is above 0, below, or neither, by more than halfway to ±1/2."""
        if self.value != self.value:
            return "none"
        if decide(Interval(*self.interval), LEVEL) is Verdict.HOLDS:
            return "level"
        low, high = self.interval
        if low > HALFWAY:
            return "grows"
        return "falls" if high < -HALFWAY else "undecided"

    def __str__(self) -> str:
        value, low, high = (round(end, 2) + 0.0 for end in (self.value, *self.interval))
        return f"width^{value:.2f} ({low:.2f} to {high:.2f})"


class Powers(NamedTuple):
    """All powers of a coordinate check.

    Attributes:
        start: of what each layer writes at the start, by layer.
        change: of its change after the last step.
        relative: of the change of each array after the last step in spectral norm, over its start, by array.
        update: of its change by its own weights alone, in step ``early``; the last layer's of the outputs.
        outputs: of the outputs at the start.
        outputs_first: of their change after step ``early``.
        outputs_change: of their change after the last step.
        roles: of the layers.
        updates: what kind of optimizer it is, by its first step.
        diverged: the smallest width at which training diverged, or None.
        narrowest: the smallest width.
        not_proportional: an array whose sizes do not grow like the width, or nothing.
        after: "after 5 steps".
        early: the step of ``update``.
    """

    start: dict[str, Power]
    change: dict[str, Power]
    update: dict[str, Power]
    relative: dict[str, Power]
    outputs: Power
    outputs_first: Power
    outputs_change: Power
    roles: dict[str, Role]
    updates: Updates
    diverged: float | None
    narrowest: float
    not_proportional: str
    after: str
    early: int

    def growing(self) -> list[str]:
        """Return the layers whose fan-out grows: µP wants what they write, and its change, of order one."""
        return [layer for layer in self.change if self.roles[layer] in ("input", "hidden", "")]


def width_findings(powers: Powers) -> tuple[Finding, ...]:
    """Draw at most five findings: the regime first, then initial weights, then learning rates.

    The powers that µP asks for follow from three rules. With fan-in n and entries of W of size s, ``W h`` is of size
    ``s √n`` where W and h are independent, as at the start, and ``s n`` where they are aligned, as after an update.

    * Hidden layers keep their size at the start with variance 1/fan-in. The last layer reads changes of order one that
      are aligned with it, so that its entries are of order 1/n: variance 1/fan-in², or zero. The outputs start at
      width^−1/2 then, or at zero; where they start at width^0 its weights are too large by width^1/2.
    * The gradient of a hidden layer's output has the size of the last layer's entries. One step of SGD changes
      ``W h`` by ``η δ |h|²``: with δ of order 1/n, a learning rate of order n for input layers (|h|² fixed), 1 for
      hidden ones, and 1/n for the last layer (δ of order one, |h|² of order n).
    * A step of Adam changes each entry by η and ``W h`` by η times the fan-in, whatever δ: learning rates of order 1,
      1/n and 1/n.

    The measured power of a layer's own update is therefore the power by which its learning rate is too large; with SGD
    less the power by which the last layer's initial weights are, which the gradients below it carry too.

    Source: Yang et al. 2022, table 3; Yang and Hu 2021, section 3.
    """
    if powers.diverged == powers.narrowest:  # powers of what diverges tell nothing else
        return (_regime(powers),)
    drawn = [
        _proportion(powers),
        _regime(powers),
        _initial(powers),
        _last_layer(powers),
        *_rates(powers),
        _arrays(powers),
    ]
    findings = [finding for finding in drawn if finding is not None]
    rank = {"!": 0, "?": 1, "✓": 2}
    return tuple(sorted(findings, key=lambda finding: rank[finding.sign])[:MOST])


def _proportion(powers: Powers) -> Finding | None:
    if not powers.not_proportional:
        return None
    return Finding(
        "?",
        f"the sizes of {powers.not_proportional} do not grow in proportion to the width: powers are those of the "
        "number that is given as width",
        f"change of the outputs {powers.after}",
        FindingId.NOT_PROPORTIONAL,
    )


def _regime(powers: Powers) -> Finding:
    """Say whether wide networks of this kind are unstable, lazy, stall, or learn features as µP wants."""
    outputs = powers.outputs_change
    changes = [powers.change[layer] for layer in powers.growing()]
    evidence = f"change of the outputs {powers.after}"
    if powers.diverged is not None:
        everywhere = powers.diverged == powers.narrowest
        meaning = (
            "lower the learning rate before anything else"
            if everywhere
            else "a learning rate that is good for a narrow network is too large for a wide one"
        )
        return Finding(
            "!",
            f"training diverges from width {powers.diverged:g} on: {powers.after} the risk is not finite, or more than "
            f"ten times that at the start; {meaning}",
            evidence,
            FindingId.DIVERGED,
        )
    later = {evidence: outputs}
    later |= {f"change of {power.layer} {powers.after}": power for power in changes}
    ever = {FIRST_CHANGE.format(powers.early): powers.outputs_first, **later}
    growing = {name: power for name, power in ever.items() if power.trend == "grows"}
    if growing:
        name, worst = max(growing.items(), key=lambda pair: pair[1].value)
        return Finding(
            "!",
            f"unstable in wide networks: the {name} grows like {worst}, so that a learning rate that is good for a "
            "narrow network is too large for a wide one",
            name,
            FindingId.UNSTABLE,
        )
    falling = [power for power in changes if power.trend == "falls"]
    if outputs.trend == "falls":
        return Finding(
            "!",
            f"wide networks train slower: the change of the outputs {powers.after} falls like {outputs}",
            evidence,
            FindingId.SLOWER,
        )
    if falling and len(falling) == len(changes):
        most = min(falling, key=lambda power: power.value)
        return Finding(
            "!",
            f"lazy: what hidden layers write changes less in wider networks, that of layer {most.layer} like {most}, "
            f"while the outputs change like {outputs}; wide networks train as kernel machines and learn no features",
            f"change of {most.layer} {powers.after}",
            FindingId.LAZY,
        )
    if falling:
        names = ", ".join(power.layer for power in falling)
        return Finding(
            "!",
            f"not all layers learn in wide networks: the change of {names} {powers.after} falls, of "
            f"{falling[0].layer} like {falling[0]}",
            f"change of {falling[0].layer} {powers.after}",
            FindingId.LAYERS_THAT_DO_NOT_LEARN,
        )
    if outputs.trend == "level" and all(power.trend == "level" for power in changes):
        what = (
            "outputs and what hidden layers write"
            if changes
            else "the outputs, which alone are seen,"
        )
        return Finding(
            "✓",
            f"{what} change alike at every width {powers.after}: powers of the width are within ±{HALFWAY:g} of µP's 0",
            evidence,
            FindingId.TRANSFERS,
        )
    name, unclear = next(
        (name, power) for name, power in later.items() if power.trend in ("undecided", "none")
    )
    if unclear.trend == "none":
        return Finding(
            "?",
            f"no power can be fitted to the {name}: it is zero in some networks",
            name,
            FindingId.NOT_DECIDED,
        )
    return Finding(
        "?",
        f"not decided: the {name} goes like {unclear}; wider networks or more seeds would tell",
        name,
        FindingId.NOT_DECIDED,
    )


def _initial(powers: Powers) -> Finding | None:
    """Name the first layer that does not keep its size at the start; later ones inherit it."""
    for layer in powers.growing():
        power = powers.start[layer]
        if power.trend in ("grows", "falls"):
            large = "large" if power.trend == "grows" else "small"
            return Finding(
                "!",
                f"{_worded(powers.roles[layer])} {layer} writes {power} at the start: its initial weights are too "
                f"{large} by that power; a variance of 1/fan-in keeps the size",
                f"{layer} at the start",
                FindingId.START_OF_A_LAYER,
            )
    return None


def _last_layer(powers: Powers) -> Finding | None:
    """Say by which power the last layer starts too large, where something else than that is off too."""
    excess = _excess(powers)
    if excess is None or excess <= 0 or _is_level(powers):
        return None
    return Finding(
        "!",
        f"outputs start like {powers.outputs}: for µP the last layer's initial weights are too large by "
        f"{_as_power(excess)}; give them variance 1/fan-in² in place of 1/fan-in, or start them at zero",
        "outputs at the start",
        FindingId.START_OF_THE_LAST_LAYER,
    )


def _is_level(powers: Powers) -> bool:
    """Return whether every change has the power that µP wants."""
    changes = [powers.change[layer] for layer in powers.growing()]
    return all(power.trend == "level" for power in (*changes, powers.outputs_change))


def _excess(powers: Powers) -> float | None:
    """Return the power by which the last layer's entries are larger than 1/n, in halves; None where it is undecided.

    A sum over n independent terms is √n times an entry. Entries below 1/n are no fault: they grow to 1/n in training.
    """
    if not _reads_growing(powers) or powers.outputs.trend in ("none", "falls"):
        return 0.0
    if powers.outputs.trend == "undecided":
        return None
    return _in_halves(powers.outputs.value + 0.5)


def _reads_growing(powers: Powers) -> bool:
    return "output" in powers.roles.values()


def _rates(powers: Powers) -> list[Finding]:
    """Say of each kind of layer by which power of the width its learning rate is off."""
    groups: dict[tuple[Role, float | None, str], list[str]] = {}
    for layer, power in powers.update.items():
        role = powers.roles[layer]
        if role not in ("input", "hidden", "output"):
            continue
        correction = _correction(powers, layer)
        if power.trend in ("grows", "falls") or (power.trend == "level" and correction):
            groups.setdefault((role, correction, power.trend), []).append(layer)
    return [
        _rate(powers, role, correction, layers) for (role, correction, _), layers in groups.items()
    ]


def _correction(powers: Powers, layer: str) -> float | None:
    """Return the power by which a layer's learning rate is too large, in halves, once the last layer starts right.

    None where the power of the last layer, which gradients carry, is not decided.
    """
    power = powers.update[layer].value
    if not _follows_gradient(powers, powers.roles[layer]):
        return _in_halves(power)
    carried = _carried(powers)
    return None if carried is None else _in_halves(power - carried)


def _follows_gradient(powers: Powers, role: Role) -> bool:
    """Return whether a layer's update carries the size of the last layer's weights."""
    return powers.updates == "gradient" and role != "output"


def _carried(powers: Powers) -> float | None:
    """Return the power by which gradients below the last layer are larger than µP's, because its weights are.

    A last layer that starts at zero has the weights of its own first update by then.
    """
    if powers.outputs.trend == "none" and powers.early > 1:
        last = [
            power
            for layer, power in powers.update.items()
            if powers.roles[layer] == "output" and power.trend in ("grows", "falls", "undecided")
        ]
        if not last:
            return 0.0
        return None if last[-1].trend == "undecided" else last[-1].value
    return _excess(powers)


def _rate(powers: Powers, role: Role, correction: float | None, layers: Sequence[str]) -> Finding:
    """Say how far the learning rate of some layers of one kind is off, and what to do."""
    most = max((powers.update[layer] for layer in layers), key=lambda power: abs(power.value))
    several = len(layers) > 1
    its = "their" if several else "its"
    named = f"{_worded(role)}{'s' * several} {_listed(layers)}"
    written = "they write" if several else "it writes"
    optimizer = {"even": "Adam", "gradient": "SGD", "mixed": "this optimizer"}[powers.updates]
    if correction is None:
        advice = f"; {its} learning rate goes with the last layer's weights, whose power is not decided: try more seeds"
    else:
        if correction > 0:
            advice = f"with {optimizer} divide {its} learning rate by {_as_power(correction)}"
        elif correction < 0:
            advice = f"with {optimizer} multiply {its} learning rate by {_as_power(-correction)}"
        else:
            advice = f"{its} learning rate is right"
        if _follows_gradient(powers, role) and _carried(powers):
            advice = f". Gradients carry the power of the last layer's weights too; once that layer is mended, {advice}"
        else:
            advice = f": {advice}"
    return Finding(
        "!",
        f"{named}: by step {powers.early} {its} own weights change what {written} like {most}, where "
        f"µP has power 0{advice}",
        f"own update of {most.layer} in step {powers.early}",
        FindingId.LEARNING_RATE,
    )


def _arrays(powers: Powers) -> Finding | None:
    """Say of a model whose layers are not seen which arrays change otherwise than in proportion to their start."""
    if powers.change or not powers.relative:
        return None
    off = [power for power in powers.relative.values() if power.trend in ("grows", "falls")]
    text = "the layers of a JAX function are not seen, only its outputs and weights"
    most = max(off or powers.relative.values(), key=lambda power: abs(power.value))
    evidence = f"relative change of {most.layer} {powers.after}"
    if not off:
        return Finding("?", text, evidence, FindingId.LAYERS_NOT_SEEN)
    return Finding(
        "?",
        f"{text}: {most.layer} changes beside its start like {most} in spectral norm, where µP has power 0",
        evidence,
        FindingId.LAYERS_NOT_SEEN,
    )


def _listed(layers: Sequence[str]) -> str:
    """Return the first layers' names.

    >>> _listed(["0", "1"]), _listed(["0", "1", "2", "3", "4"])
    ('0, 1', '0, 1, 2 and 2 more')
    """
    if len(layers) <= SHOWN + 1:
        return ", ".join(layers)
    return f"{', '.join(layers[:SHOWN])} and {len(layers) - SHOWN} more"


def _worded(role: Role) -> str:
    return {"input": "input layer", "hidden": "hidden layer", "output": "output layer"}.get(
        role, "layer"
    )


def _in_halves(power: float) -> float:
    return round(2 * power) / 2


def _as_power(power: float) -> str:
    """Return a power of the width as text.

    >>> _as_power(1.0), _as_power(0.5)
    ('width', 'width^0.5')
    """
    return "width" if power == 1 else f"width^{power:g}"
