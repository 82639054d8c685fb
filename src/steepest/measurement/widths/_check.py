"""The coordinate check of µP on a reader's own model: how sizes and changes scale with its width."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.checks import exponent
from steepest.core.errors import UserError
from steepest.core.panels import Panel, observed_curve, panel
from steepest.measurement._building import Builder
from steepest.measurement._fingerprint import digest_of
from steepest.measurement._report import Reading, Report
from steepest.measurement.adapters import Batches, states_kept
from steepest.measurement.widths._coordinates import (
    Coordinates,
    coordinates,
    fixed_examples,
)
from steepest.measurement.widths._findings import (
    FIRST_CHANGE,
    HALFWAY,
    Power,
    Powers,
    Role,
    Updates,
    width_findings,
)
from steepest.measurement.widths._knobs import (
    built_at,
    check_counts,
    check_growth,
    check_seed,
    ordered,
    runs_of,
)

WIDTHS = (0.5, 1.0, 2.0, 4.0)
SEEDS = 5  # networks of each width: with three, Student's interval is half as wide again
STEPS = 5
EXAMPLES = 128  # on which coordinates are compared
RISEN = 10.0  # times the risk at the start, above which a training has diverged
PROPORTIONAL = 0.1  # by which the logarithm of a layer's size may differ from that of the width
MUP = "µP: power 0 (Yang et al. 2022)"
ROLES = {
    "input": "input layer: its fan-in is fixed, its fan-out grows",
    "hidden": "hidden layer: fan-in and fan-out grow",
    "output": "output layer: its fan-in grows, its fan-out is fixed",
    "fixed": "a layer whose sizes do not grow",
    "": "which sides grow with the width is not known, as its array of weights belongs to no layer that is seen",
}


class _Networks(NamedTuple):
    """All networks of a check, by width and seed, shapes ``(widths, seeds)`` as nested lists."""

    widths: tuple[float, ...]
    by_width: list[list[Coordinates]]

    def sizes(self, of: Callable[[Coordinates], float]) -> NDArray:
        """Return one number of each network, shape ``(seeds, widths)``."""
        return np.array([[of(network) for network in row] for row in self.by_width]).T

    @property
    def all(self) -> list[Coordinates]:
        return [network for row in self.by_width for network in row]

    @property
    def first(self) -> Coordinates:
        return self.by_width[0][0]


@states_kept()
def width_check(
    build: Any,
    widths: Sequence[float] = WIDTHS,
    *,
    seeds: int = SEEDS,
    steps: int = STEPS,
    seed: int = 0,
    examples: int = EXAMPLES,
    watch: Callable[[str], None] = lambda stage: None,
) -> Report:
    """Check how what each layer writes, and how it changes in training, scales with the width of your model.

    The coordinate check of the maximal update parametrization, µP: at each width and seed the model is built and
    trained for a few steps, and the power of the width is fitted for the root mean square of the coordinates, on fixed
    examples. Under µP what hidden layers write has power 0 at the start, so have its changes and those of the outputs,
    and outputs at the start have power 0 at most; then good hyperparameters of a narrow network are good for a wide
    one. Where a layer's own update has another power the findings say by which power of the width its learning rate
    or its initial weights are off.

    Args:
        build: your function, or ``"FILE.py:FUNCTION"``: ``build(seed=0, width=1.0)``, where the width multiplies every
            hidden size. It returns the untrained model with ``train``, whose steps are at the learning rates that
            you would use at this width; see ``steepest.measurement.Built``.
        widths: multipliers, at least three.
        seeds: networks of each width. A function without ``seed`` gives one, and intervals are those of the fit.
        steps: of training.
        seed: the first seed.
        examples: on which layers are read, at most.
        watch: called with what is being done.

    Returns:
        a report: the powers of the width as readings (``width-start``, ``width-change``, ``width-update``,
        ``width-outputs``, ``width-weights``), with a picture of each quantity against width, and findings.

    Raises:
        UserError: a function without ``width`` or ``train``; knobs that change nothing; fewer than three widths.

    Source: Yang et al. 2022, "Tensor Programs V", section 3, table 3 and appendix D.1 (coordinate checking); Yang and
    Hu 2021, "Tensor Programs IV", where a layer is updated maximally if ``ΔW h`` has coordinates of order one.
    """
    started = time.perf_counter()
    builder = Builder.of(build)
    widths = ordered(widths)
    check_counts(seeds=seeds, steps=steps, examples=examples)
    runs = runs_of(builder, seed, seeds)
    watch("building")
    x = fixed_examples(built_at(builder, widths[0], runs[0]), examples)
    check_seed(builder, widths[0], runs)
    by_width = []
    for width in widths:
        row = []
        for run in runs:
            watch(f"width {width:g}" + ("" if run is None else f", seed {run}"))
            row.append(coordinates(built_at(builder, width, run), x, steps))
        by_width.append(row)
    networks = _Networks(widths, by_width)
    _check_width(networks, builder.where)
    return replace(
        _report(networks, len(x)),
        seconds=round(time.perf_counter() - started, 3),
        data=digest_of(Batches((x, x))),
    )


def _check_width(networks: _Networks, where: str) -> None:
    """Refuse a width that changes nothing, or that gives networks of other layers."""
    check_growth([row[0].weights for row in networks.by_width], networks.widths, where)
    for network in networks.all:
        if list(network.shapes) != list(networks.first.shapes):
            raise UserError(
                f"{where} gives other layers at other widths; only their sizes may change"
            )


# ------------------------------------------------------------------------------------------- the report


def _report(networks: _Networks, examples: int) -> Report:
    """Fit all powers and draw the findings."""
    first = networks.first
    steps = min(len(network.outputs_change) for network in networks.all)
    roles: dict[str, Role] = {
        layer: _role(networks, first.arrays.get(layer)) for layer in _layers(networks)
    }
    early = _first_step_of_all(networks)
    layers = list(first.start)
    start = [_power(networks, layer, lambda c, layer=layer: c.start[layer]) for layer in layers]
    change = [
        _power(networks, layer, lambda c, layer=layer: c.change[layer][steps - 1])
        for layer in layers
    ]
    update = [
        _power(networks, layer, lambda c, layer=layer: c.own[layer][early - 1])
        for layer in first.own
    ]
    outputs = (
        _power(networks, "outputs", lambda c: c.outputs),
        _power(networks, "outputs", lambda c: c.outputs_change[early - 1]),
        _power(networks, "outputs", lambda c: c.outputs_change[steps - 1]),
    )
    weights = [
        _power(networks, name, lambda c, name=name: c.relative[name]) for name in first.shapes
    ]
    diverged = _diverged(networks, steps)
    after = f"after {steps} step{'s' * (steps > 1)}"
    readings = [
        *_group(
            "width-start", "{} at the start", start, networks, roles, "Coordinates at the start"
        ),
        *_group(
            "width-change", f"change of {{}} {after}", change, networks, roles, f"Change {after}"
        ),
        *_group(
            "width-update",
            f"own update of {{}} in step {early}",
            update,
            networks,
            roles,
            f"Change by a layer's own weights, step {early}",
        ),
        *_of_outputs(outputs, networks, early, after),
        *_group(
            "width-weights",
            f"relative change of {{}} {after}",
            weights,
            networks,
            _roles_of_arrays(networks),
            f"Change of the weights {after}, ‖ΔW‖₂/‖W‖₂",
        ),
    ]
    powers = Powers(
        {power.layer: power for power in start},
        {power.layer: power for power in change},
        {power.layer: power for power in update},
        {power.layer: power for power in weights},
        *outputs,
        roles,
        _updates(networks),
        diverged,
        networks.widths[0],
        _not_proportional(networks),
        after,
        early,
    )
    shown = " ".join(f"{width:g}" for width in networks.widths)
    return Report(
        f"{first.name} at widths {shown}, powers of the width",
        networks.by_width[-1][0].weights,
        examples,
        tuple(readings),
        sum(network.passes for network in networks.all),
        0.0,
        width_findings(powers),
    )


def _layers(networks: _Networks) -> list[str]:
    first = networks.first
    return [*first.start, *[layer for layer in first.own if layer not in first.start]]


def _power(networks: _Networks, layer: str, of: Callable[[Coordinates], float]) -> Power:
    """Fit one power of the width, with its interval over seeds, or of the fit where there is one seed."""
    sizes = networks.sizes(of)
    y = sizes if len(sizes) > 1 else sizes[0]
    check = exponent("power", 0.0, networks.widths, y, HALFWAY)
    interval = (float(check.interval.low), float(check.interval.high))
    return Power(layer, float(check.measured), interval, sizes)


def _first_step_of_all(networks: _Networks) -> int:
    """Return the first step after which as many layers have moved by their own weights as ever do.

    Behind an output layer that starts at zero no gradient flows in the first step, nor in one at learning rate 0.
    """
    early = min((len(steps) for c in networks.all for steps in c.own.values()), default=1)
    moved = [
        sum(steps[step] != 0 for c in networks.all for steps in c.own.values())
        for step in range(early)
    ]
    return 1 + (moved.index(max(moved)) if moved else 0)


def _role(networks: _Networks, name: str | None) -> Role:
    """Return which sides of an array of a layer grow with the width; its first axis is the fan-out."""
    if name is None:
        return ""
    narrow = networks.by_width[0][0].shapes[name]
    wide = networks.by_width[-1][0].shapes[name]
    fan_out = wide[0] > narrow[0]
    fan_in = wide[1] > narrow[1]
    if fan_in and fan_out:
        return "hidden"
    if fan_in:
        return "output"
    return "input" if fan_out else "fixed"


def _roles_of_arrays(networks: _Networks) -> dict[str, Role]:
    """Return the roles of arrays; of those that belong to no layer the order of the axes is not known."""
    of_layers = set(networks.first.arrays.values())
    return {
        name: _role(networks, name if name in of_layers else None) for name in networks.first.shapes
    }


def _diverged(networks: _Networks, steps: int) -> float | None:
    """Return the smallest width at which a network diverges, or None.

    Outputs that are not finite after some step, or a risk at the end of ten times that at the start.
    """
    for width, row in zip(networks.widths, networks.by_width, strict=True):
        for network in row:
            before, after = network.risks
            finite = np.isfinite([*network.outputs_change[:steps], after]).all()
            if not finite or after > RISEN * before > 0:
                return width
    return None


def _not_proportional(networks: _Networks) -> str:
    """Return the first array with a side that grows, but not in proportion to the width; nothing where all do."""
    narrow = networks.by_width[0][0].shapes
    wide = networks.by_width[-1][0].shapes
    factor = math.log(networks.widths[-1] / networks.widths[0])
    for name, small in narrow.items():
        for before, after in zip(small, wide[name], strict=False):
            growth = math.log(after / before) if before else 0.0
            if growth and abs(growth - factor) > PROPORTIONAL * factor:
                return f"{name} ({before} to {after})"
    return ""


def _updates(networks: _Networks) -> Updates:
    """Tell by their first changes whether all arrays are updated as by Adam, none, or some."""
    even = [is_even for network in networks.all for is_even in network.even.values()]
    if even and all(even):
        return "even"
    return "mixed" if any(even) else "gradient"


# ----------------------------------------------------------------------------------------- the readings


def _group(
    id: str,
    name: str,
    powers: Sequence[Power],
    networks: _Networks,
    roles: dict[str, Role],
    title: str,
) -> list[Reading]:
    """Return one reading a layer; the first has the picture of all."""
    picture = _picture(title, powers, networks)
    return [
        _reading(
            id,
            name.format(power.layer),
            power,
            MUP,
            f"{ROLES[roles.get(power.layer, '')]}; {_sizes(power)}",
            picture if i == 0 else None,
            power.layer,
        )
        for i, power in enumerate(powers)
    ]


def _of_outputs(
    outputs: tuple[Power, Power, Power], networks: _Networks, early: int, after: str
) -> list[Reading]:
    start, first, change = outputs
    drawn = [
        start._replace(layer="at the start"),
        first._replace(layer=f"change in step {early}"),
        change._replace(layer=f"change {after}"),
    ]
    picture = _picture("Outputs at the start, and their change", drawn, networks)
    return [
        _reading(
            "width-outputs",
            "outputs at the start",
            start,
            "µP: power −1/2, or 0 everywhere (last layer of variance 1/fan-in², or zero)",
            _sizes(start),
            picture,
        ),
        _reading("width-outputs", FIRST_CHANGE.format(early), first, MUP, _sizes(first)),
        _reading("width-outputs", f"change of the outputs {after}", change, MUP, _sizes(change)),
    ]


def _reading(
    id: str,
    name: str,
    power: Power,
    theory: str,
    interpretation: str,
    picture: Panel | None = None,
    layer: str = "",
) -> Reading:
    if math.isnan(power.value):
        none = f"no power: {_sizes(power)}"
        return Reading(name, math.nan, theory=theory, interpretation=none, id=id, layer=layer)
    return Reading(
        name,
        power.value,
        power.interval,
        "seeds" if len(power.sizes) > 1 else "fit",
        theory,
        None if "−1/2" in theory else 0.0,
        interpretation=interpretation,
        panel=picture,
        id=id,
        layer=layer,
    )


def _sizes(power: Power) -> str:
    """Say the sizes at the narrowest and the widest network, mean over the seeds."""
    if not np.isfinite(power.sizes).all():
        return "not finite in some network, or beside a start of zero"
    if not (power.sizes > 0).any():
        return "zero at every width"
    if not (power.sizes > 0).all():
        return "zero in some networks"
    narrow, *_, wide = power.sizes.mean(0)
    return f"{narrow:.3g} at the narrowest, {wide:.3g} at the widest"


def _picture(title: str, powers: Sequence[Power], networks: _Networks) -> Panel | None:
    """Draw sizes against width, of all that are positive and finite."""
    drawn = [power for power in powers if not math.isnan(power.value)]
    curves = [
        observed_curve(
            np.array(networks.widths),
            power.sizes,
            power.layer,
            shade=i / max(1, len(drawn) - 1),
        )
        for i, power in enumerate(drawn)
    ]
    if not curves:
        return None
    return panel(
        title, "width", "root mean square" if "₂" not in title else "ratio", *curves, log="xy"
    )
