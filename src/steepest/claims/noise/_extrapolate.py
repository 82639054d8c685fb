"""What fields refuse from which limits are extrapolated, or which walkers are divided into groups."""

from collections.abc import Sequence

from steepest.core.errors import UserError


def check_sizes(name: str, sizes: Sequence[float], least: int = 2) -> None:
    """Refuse sizes of which there are too few, or two are the same: nothing can be extrapolated from these."""
    if len(set(sizes)) < max(len(sizes), least):
        raise UserError(
            f"{name}: expected at least {least} different numbers, since a limit is extrapolated from them, got "
            f"{' '.join(f'{size:g}' for size in sizes)}"
        )


def check_groups(groups: int, **counts: int) -> None:
    """Refuse numbers of walkers that cannot be divided into groups of the same size."""
    for name, count in counts.items():
        if count % groups:
            field = name.replace("_", "-")
            raise UserError(
                f"{field}: expected a multiple of {groups}, the number of groups of walkers, got {count}"
            )
