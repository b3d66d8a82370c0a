"""Commands in a process of their own: `python -m powersweep`, with one line of JSON for each of its notes.

A coordinator handles signals, may end its process, and keeps threads of tasks that do not return. None of this belongs
into the process of a notebook.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable

from ._errors import of


def run(arguments: list[str], tell: Callable[[str], None], manifest: str | None = None) -> str:
    """Runs a command and returns its standard output. `manifest` is its standard input, and `tell` gets each note."""
    command = [sys.executable, "-P", "-m", "powersweep", "--log-format=json", *arguments]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as stdin, tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        stdin.write(manifest or "")
        stdin.seek(0)
        # The handler of another package, such as polars, may let reads of a pipe continue after a signal.
        signal.siginterrupt(signal.SIGINT, True)
        # In a process group of its own, a terminal's Ctrl-C reaches it once: from here.
        with subprocess.Popen(
            command, stdin=stdin, stdout=out, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", process_group=0
        ) as child:
            reason = _follow(child, tell)
        out.seek(0)
        text = out.read()
    if child.returncode != 0:
        without = f"`powersweep {' '.join(arguments)}` ended with code {child.returncode} and without a message"
        raise of(child.returncode if child.returncode > 0 else 1, reason or without)
    return text


def _follow(child: subprocess.Popen[str], tell: Callable[[str], None]) -> str:
    """Passes on the notes until the command ends. Returns why it failed.

    An interrupt is passed on, and the command ends in its own way: finished tasks are kept.
    """
    error, texts = "", []
    try:
        for line in child.stderr or ():
            try:
                note = json.loads(line)
                message: str = note["message"].removeprefix("powersweep: ")
            except (ValueError, KeyError, TypeError):
                # Of a wrong command line, or a panic.
                texts.append(line)
                continue
            if "exit_code" in note:
                error = message
            else:
                tell(message)
        child.wait()
    except BaseException:
        try:
            child.send_signal(signal.SIGINT)
            child.communicate()
        except BaseException:
            # A second interrupt ends the command at once.
            child.send_signal(signal.SIGINT)
            child.communicate()
        raise
    # The usage and the help of the command line follow its error.
    wrong = "".join(texts).partition("\n\nUsage:")[0].partition("\n\nFor more information, try")[0]
    return error or wrong.removeprefix("error: ").strip()
