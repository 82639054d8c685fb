"""What importing the convex programs brings along; the order of all rooms is tested in tests/test_architecture.py."""

import subprocess
import sys


def test_programs_need_no_integrator():
    code = "import sys, steepest.programs; print([m for m in ('steepest.dynamics', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
