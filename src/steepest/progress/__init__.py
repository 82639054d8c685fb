"""What the terminal shows while commands work, and after."""

from ._claims import Session as Session
from ._claims import describe as describe
from ._measure import measured as measured
from ._sweep import swept as swept
