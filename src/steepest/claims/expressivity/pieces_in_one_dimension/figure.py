"""What the figure of pieces-in-one-dimension shows."""

from collections.abc import Mapping

import xarray

from steepest import kit


def panels_of_layers(
    law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset], width: int
) -> tuple[kit.Panel, ...]:
    """Draw breakpoints per neuron over the layers: on the line, in the segment, between two digits."""
    wrong = {"signs at the ends": rivals["two_ends"]} if rivals else {}
    of_wide = kit.curves("", law.line, seen.line, over="layer", name=f"width {width}").curves
    per_neuron = "breakpoints per neuron"
    return (
        kit.curves(
            "On the line: one breakpoint a neuron, less above narrow layers",
            law.narrow_line,
            seen.narrow_line,
            over="layer",
            by="narrow",
            y=per_neuron,
            name="width {}",
            more=of_wide,
            ylim=(0, 1.1),
        ),
        kit.curves(
            "In the segment",
            law.segment,
            seen.segment,
            over="layer",
            y=per_neuron,
            rivals={name: other.segment for name, other in wrong.items()},
            ylim=(0, None),
        ),
        kit.curves(
            "Between images of two digits",
            law.digits,
            seen.digits,
            over="layer_of_digits",
            x="layer",
            y=per_neuron,
            rivals={name: other.digits for name, other in wrong.items()},
            ylim=(0, None),
        ),
    )
