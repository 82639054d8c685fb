"""Panels and maps drawn with matplotlib: figures for notebooks, light and deterministic SVG for pages.

Curves are thinned before they are drawn (:func:`thin`), so that a page stays small however long the run was; values
that are not finite, or not positive on a logarithmic axis, leave gaps. Maps keep every cell.
"""

from ._axes import power as power
from ._axes import thin as thin
from ._cells import around as around
from ._cells import cleaned as cleaned
from ._cells import edges as edges
from ._cells import span as span
from ._colours import COLOURS as COLOURS
from ._colours import FAMILY as FAMILY
from ._colours import GAP as GAP
from ._colours import GAP_LINE as GAP_LINE
from ._colours import GRID as GRID
from ._colours import INK as INK
from ._colours import MARK as MARK
from ._colours import PALE as PALE
from ._colours import VERDICTS as VERDICTS
from ._colours import blend as blend
from ._colours import mixture as mixture
from ._colours import named as named
from ._colours import ramp as ramp
from ._figure import draw as draw
from ._figure import page_svg as page_svg
from ._figure import svg as svg
from ._figure import thumbnail as thumbnail
