"""The command line: `powersweep`, or `python -m powersweep`."""

import os
import signal
import sys
import sysconfig

from . import _native


def script() -> None:
    """Runs the command line and ends with its exit code."""
    # Commands that handle signals set their own handlers. Python's would only note a signal for later.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    path = sys.argv[0]
    if not os.access(path, os.X_OK):
        # python -m powersweep: workers and jobs of a batch system start the installed script.
        path = os.path.join(sysconfig.get_path("scripts"), "powersweep")
    sys.exit(_native.main(["powersweep", *sys.argv[1:]], path if os.path.isfile(path) else None))


if __name__ == "__main__":
    script()
