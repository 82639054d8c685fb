"""The atlas: stored results as a static site that opens from disk, without network or server.

Only the pages of phase diagrams have a script, and they show everything without it too.
"""

from ._build import build as build
from ._build import refuse as refuse
from ._drawn import drawn as drawn
from ._figures import standalone as standalone
from ._folders import list_files as list_files
from ._folders import new_folder as new_folder
from ._folders import refuse_folder as refuse_folder
from ._formula import formula as formula
from ._mathfont import MATH_FILE as MATH_FILE
from ._mathfont import MATH_SHEET as MATH_SHEET
from ._mathfont import characters as characters
from ._mathfont import font as font
from ._pages import environment as environment
from ._pages import figure as figure
from ._pages import figure_files as figure_files
from ._pages import figures_alike as figures_alike
from ._pages import parts as parts
from ._pages import roles as roles
from ._policy import guarded as guarded
from ._referee import referee_page as referee_page
from ._report import comparison_page as comparison_page
from ._report import report_page as report_page
from ._runs import Run as Run
from ._runs import gather as gather
from ._style import sheet_of_book as sheet_of_book
from ._style import sheet_of_slides as sheet_of_slides
from ._subject import subject_page as subject_page
from ._text import number as number
from ._training import training_page as training_page
from ._trials import trials_page as trials_page
