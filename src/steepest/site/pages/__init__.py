"""The atlas: stored results as a static site that opens from disk, without network or server.

Only the pages of phase diagrams have a script, and they show everything without it too.
"""

from ._build import build as build
from ._build import refuse as refuse
from ._drawn import drawn as drawn
from ._report import comparison_page as comparison_page
from ._report import report_page as report_page
from ._subject import subject_page as subject_page
from ._training import training_page as training_page
