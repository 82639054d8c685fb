"""Packages that an extra of Steepest brings."""

import importlib
from typing import Any

from steepest.core.errors import UserError


def exporter(module: str) -> Any:
    """Import a package of the extra ``export``.

    Raises:
        UserError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise UserError(f"this export needs {module}; pip install 'steepest[export]'") from None
