"""Quantities of one network at one moment."""

from ._alignment import alignment as alignment
from ._alignment import settled as settled
from ._alignment import upper_pairs as upper_pairs
from ._collapse import Collapse as Collapse
from ._collapse import class_means as class_means
from ._collapse import collapse as collapse
from ._collapse import cosines as cosines
