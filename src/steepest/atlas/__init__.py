"""The atlas: stored results as a static site that opens from disk, without network, server or scripts."""

from ._build import build as build
from ._report import report_page as report_page
