"""``python -m steepest`` is the command ``steepest``."""

import signal
import sys

if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command answers: no traceback
    from steepest.app.cli import main

    sys.exit(main())
