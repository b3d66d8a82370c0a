"""One task in this process."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import powersweep
from powersweep import _native
from scratch import MANIFEST, ScratchCase

# Simulates for many seconds.
LONG = {"synthetic_jobs_count": 300_000, "backfill": "conservative", "interarrival_factor": 0.6}


class Simulate(ScratchCase):
    def test_the_row_is_the_one_of_the_command(self):
        row = powersweep.simulate(gear_rule="bsld", bsld_threshold=2, synthetic_jobs_count=200, seed=3)
        command = ["simulate", "-s", "gear_rule=bsld", "-s", "bsld_threshold=2", "-s", "synthetic_jobs_count=200", "--seed", "3"]
        shown = subprocess.run([sys.executable, "-m", "powersweep", *command, "--json"], capture_output=True, check=True)
        shown = json.loads(shown.stdout)
        measured = {"started_at", "wall_ms", "engine_ms", "parse_ms"}
        self.assertEqual(sorted(row), sorted(shown))
        for name in row.keys() - measured:
            known = "unlimited" if row[name] == float("inf") else row[name]
            self.assertEqual(known, shown[name], name)

    def test_findings_are_warnings(self):
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "power is relative") as caught:
            powersweep.simulate(synthetic_jobs_count=50)
        self.assertEqual(caught.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            powersweep.simulate(synthetic_jobs_count=50, power_top_w=100)

    def test_optional_tables_are_rows(self):
        row = powersweep.simulate(synthetic_jobs_count=50, watch_machine=True, jobs=True, series=True)
        self.assertEqual(len(row.jobs), row["jobs_count"])
        self.assertIn("power_w", row.series["series"])
        alone = powersweep.simulate(synthetic_jobs_count=50)
        self.assertIsNone(alone.jobs)
        self.assertIsNone(alone.series)

    def test_values_of_every_kind_are_settings(self):
        row = powersweep.simulate(
            gear_rule="bsld", bsld_threshold=1.5, wq_threshold=float("inf"), synthetic_jobs_count=50,
            gears_ghz=[1.0, 2.0], gear_volts=[1.0, 1.2], watch_machine=True,
        )
        self.assertEqual(row["wq_threshold"], float("inf"))
        self.assertEqual(row["gears_ghz"], [1.0, 2.0])

    def test_a_path_and_numbers_are_arguments(self):
        path = self.folder / "sweep.toml"
        path.write_text(_native.manifest_text(MANIFEST))
        row = powersweep.simulate(path, index=0, task_deadline=60, task_max_memory=1 << 30)
        self.assertEqual(row["experiment"], "sweep")

    def test_mistakes_are_explained(self):
        for settings, message in [
            ({"backfil": "easy"}, "did you mean `backfill`"),
            ({"bsld_threshold": 2}, "add -s gear_rule=bsld"),
            ({"synthetic_jobs_count": "many"}, "synthetic_jobs_count"),
            ({"synthetic_jobs_count": -1}, "synthetic_jobs_count"),
        ]:
            with self.subTest(settings), self.assertRaisesRegex(powersweep.UsageError, message):
                powersweep.simulate(**settings)
        with self.assertRaises(powersweep.WorkloadError):
            powersweep.simulate(log="no-such-log.swf")
        with self.assertRaisesRegex(powersweep.PowersweepError, "event"):
            powersweep.simulate(task_max_events=10)

    def test_no_setting_has_the_name_of_an_argument(self):
        listed = subprocess.run([sys.executable, "-m", "powersweep", "policies", "--json"], capture_output=True, check=True)
        text = listed.stdout.decode()
        self.assertIn("bsld_threshold", text)
        for name in ("index", "seed", "jobs", "series", "traces", "cache", "task_deadline", "task_max_events", "task_max_memory"):
            self.assertNotIn(f'"name": "{name}"', text)

    def test_other_threads_run_meanwhile(self):
        counted, ended = 0, threading.Event()

        def count():
            nonlocal counted
            while not ended.is_set():
                counted += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        begun = time.monotonic()
        with self.assertRaisesRegex(powersweep.PowersweepError, "not finished within 1 s"):
            powersweep.simulate(task_deadline="1s", **LONG)
        during, seconds = counted, time.monotonic() - begun
        ended.set()
        thread.join()
        self.assertGreater(during, 100 * seconds, f"{during} rounds in {seconds:.1f} s")

    def test_an_interrupt_ends_a_simulation(self):
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            powersweep.simulate(**LONG)
        self.assertLess(time.monotonic() - begun, 5)


class Package(unittest.TestCase):
    def test_every_exit_code_has_its_class(self):
        from powersweep import _errors

        for code, meaning in _native.exit_codes():
            if code > 0:
                made = _errors.of(code, meaning)
                self.assertEqual((type(made).exit_code, made.exit_code), (code, code), meaning)
                self.assertIs(getattr(powersweep, type(made).__name__), type(made))

    def test_the_time_of_an_import_is_shown(self):
        code = "import time; t = time.perf_counter(); import powersweep; print(time.perf_counter() - t)"
        seconds = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(7)]
        print(f"import powersweep: {min(seconds) * 1e3:.0f} ms", file=sys.stderr)

    def test_nothing_else_is_imported(self):
        code = "import sys, powersweep; print([m for m in ('polars', 'pandas', 'pyarrow', 'numpy', 'subprocess') if m in sys.modules])"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout, b"[]\n")


if __name__ == "__main__":
    unittest.main()
