"""A test case in a folder of its own, where no configuration of the machine is read."""

import os
import pathlib
import tempfile
import unittest

MANIFEST = {
    "version": 1,
    "name": "sweep",
    "seeds": {"from": 1, "count": 3},
    "workloads": {"synthetic": {"source": "lublin", "synthetic_jobs_count": 100}},
    "policies": {"easy": {"backfill": "easy"}, "fcfs": {"backfill": "none"}},
}


class ScratchCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)
        self.folder = pathlib.Path(scratch.name)
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        for name in [name for name in os.environ if name.startswith("POWERSWEEP_") and name != "POWERSWEEP_TRACES"]:
            del os.environ[name]
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_CACHE_HOME"] = str(self.folder / "home")
