"""The device that JAX computes on: whether it can be had."""

import os

from steepest.core.errors import UserError


class NoDeviceError(UserError):
    """JAX has no device to compute on, so that nothing else need be run."""


def check_device() -> None:
    """Start JAX's device, and say in a sentence if it cannot be had, before anything is computed on it.

    Raises:
        NoDeviceError: the environment asks for a device that is not there, or that JAX does not know.
    """
    import jax

    try:
        jax.default_backend()
    except (RuntimeError, AssertionError) as trouble:
        asked = os.environ.get("JAX_PLATFORMS", "")
        reason = (str(trouble).splitlines() or ["it has no driver for it"])[0].partition(" (set ")[
            0
        ]
        raise NoDeviceError(
            f"JAX cannot start JAX_PLATFORMS={asked} ({reason}); unset it, or set JAX_PLATFORMS=cpu"
        ) from trouble
