"""``python -m steepest`` is the command ``steepest``."""

import sys

from steepest.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
