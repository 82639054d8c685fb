"""The claims: one folder a chapter of the book, one a claim. Importing this package imports no claim and no JAX.

The package can be called: ``steepest.claims()`` is the catalogue.
"""

import sys
from types import ModuleType

from steepest.catalogue import Entry as Entry
from steepest.catalogue import catalogue as catalogue


class _Claims(ModuleType):
    """``steepest.claims`` is both this package and the function of the public interface; a module may have a class."""

    def __call__(self) -> dict[str, Entry]:
        """Return the catalogue: every claim by name, with its chapter, its statement and where it comes from.

        >>> import steepest
        >>> steepest.claims()["catapult"].chapter
        'descent'
        """
        return catalogue()


sys.modules[__name__].__class__ = _Claims
