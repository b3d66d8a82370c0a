"""Sweeps in other processes."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

import powersweep
from scratch import MANIFEST, ScratchCase

LONG = {**MANIFEST, "name": "long", "seeds": {"from": 1, "count": 4000},
        "workloads": {"synthetic": {"source": "lublin", "synthetic_jobs_count": 20_000}}}


class Run(ScratchCase):
    def test_the_same_run_continues(self):
        experiment = powersweep.run(MANIFEST, data="data", quiet=True)
        self.assertEqual(experiment.name, "sweep")
        self.assertEqual(len(experiment.results()), 6)
        more = powersweep.run({**MANIFEST, "seeds": [1, 2, 3, 4]}, data="data", quiet=True)
        self.assertEqual(len(more.results()), 8)

    def test_a_file_is_a_manifest(self):
        text = 'version = 1\nname = "file"\n[workloads.s]\nsource = "lublin"\nsynthetic_jobs_count = 50\n[policies.p]\n'
        path = self.folder / "sweep.toml"
        path.write_text(text)
        self.assertEqual(len(powersweep.run(path, quiet=True).results()), 1)

    def test_notes_go_to_standard_error(self):
        code = f"import powersweep; powersweep.run({MANIFEST!r})"
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertIn("6 of 6 tasks done", ended.stderr)
        self.assertEqual(ended.stdout, "")

    def test_problems_of_a_manifest_are_named(self):
        with self.assertRaisesRegex(powersweep.UsageError, "did you mean `workloads`"):
            powersweep.run({**MANIFEST, "workload": {}})
        with self.assertRaisesRegex(TypeError, r"`policies\.easy\.bsld_threshold\[1\]` has a value of type NoneType"):
            powersweep.run({**MANIFEST, "policies": {"easy": {"bsld_threshold": [1, None]}}})
        with self.assertRaisesRegex(powersweep.UsageError, "did you mean `quickstart`"):
            powersweep.run("quickstrat")
        with self.assertRaisesRegex(powersweep.UsageError, "invalid value '100000' for '--slots") as caught:
            powersweep.run(MANIFEST, slots=100_000)
        self.assertNotIn("--help", str(caught.exception))

    def test_failed_tasks_raise_and_are_rows(self):
        limits = {**LONG, "name": "sweep", "seeds": [1, 2, 3], "limits": {"task_max_events": 10}}
        with self.assertRaisesRegex(powersweep.TasksFailedError, "6 tasks failed"):
            powersweep.run(limits, quiet=True)
        experiment = powersweep.Experiment("sweep")
        self.assertEqual(experiment.status()["state"], "failed")
        self.assertGreaterEqual(len(experiment.results(table="failures")), 6)
        with self.assertRaisesRegex(powersweep.TasksFailedError, "6 of 6 tasks failed"):
            experiment.wait()

    def test_an_interrupt_keeps_finished_tasks(self):
        def interrupt():
            while not list(pathlib.Path("results/data").glob("**/access/*")):
                time.sleep(0.1)
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGINT)

        # As after the first query of polars.
        signal.siginterrupt(signal.SIGINT, False)
        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt):
            powersweep.run(LONG, slots=1, quiet=True)
        experiment = powersweep.Experiment("long")
        done = experiment.status()["done"]
        self.assertTrue(0 < done < 8000, done)
        self.assertEqual(len(experiment.results(select="seed")), done)

    def test_python_handles_interrupts_after_a_run(self):
        powersweep.run(MANIFEST, quiet=True)
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        with self.assertRaises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)


class Submit(ScratchCase):
    def start(self, *arguments):
        child = subprocess.Popen([sys.executable, "-m", "powersweep", *arguments], stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def serve(self):
        server = self.start("serve", "--data", "data", "--listen", "127.0.0.1:0")
        for line in server.stderr:
            if "serving" in line:
                threading.Thread(target=server.stderr.read, daemon=True).start()
                return server
        self.fail(f"the coordinator ended with {server.wait()}")

    def test_a_submitted_sweep_is_watched(self):
        self.serve()
        experiment = powersweep.submit(MANIFEST, data="data")
        self.assertEqual(experiment.status()["done"], 0)
        states = experiment.watch(interval_s=0.1)
        self.assertEqual(next(states)["state"], "waiting")
        self.start("worker", "--data", "data", "--slots", "1")
        done = [state["done"] for state in states]
        self.assertEqual(done[-1], 6)
        self.assertEqual(done, sorted(done))
        self.assertEqual(len(experiment.results()), 6)

    def test_rows_that_are_not_published_are_read(self):
        server = self.serve()
        experiment = powersweep.submit(LONG, data="data")
        self.start("worker", "--data", "data", "--slots", "1")
        for state in experiment.watch(interval_s=0.1):
            if state["rows_unpublished"] > 0:
                break
        server.kill()
        server.wait()
        state = experiment.status()
        self.assertGreater(state["rows_unpublished"], 0)
        rows = experiment.results(select="task_index")["task_index"]
        self.assertEqual(len(rows), state["done"])
        self.assertEqual(len(set(rows)), state["done"])

    def test_control_and_its_errors(self):
        self.serve()
        experiment = powersweep.submit(MANIFEST, data="data")
        experiment.pause()
        self.assertEqual(experiment.status()["state"], "paused")
        experiment.resume()
        experiment.cancel(any_owner=True)
        with self.assertRaisesRegex(powersweep.CancelledError, "sweep was stopped"):
            experiment.wait()
        with self.assertRaisesRegex(powersweep.OwnedError, "powersweep submit"):
            powersweep.run({**MANIFEST, "name": "other"}, data="data", quiet=True)
        with self.assertRaises(powersweep.PowersweepError):
            powersweep.Experiment("nothing", data="data").pause()

    def test_without_a_coordinator_nothing_is_waited_for(self):
        server = self.serve()
        experiment = powersweep.submit(MANIFEST, data="data")
        server.terminate()
        server.wait()
        with self.assertRaisesRegex(powersweep.NetworkError, "no coordinator runs the tasks of sweep"):
            experiment.wait()


class Script(unittest.TestCase):
    def test_the_command_has_its_exit_codes(self):
        script = pathlib.Path(sys.executable).parent / "powersweep"
        commands = [[sys.executable, "-m", "powersweep"]] + ([[script]] if script.exists() else [])
        for command in commands:
            self.assertEqual(subprocess.run([*command, "--version"], capture_output=True).returncode, 0)
            wrong = subprocess.run([*command, "results"], capture_output=True, text=True)
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            wrong = subprocess.run([*command, "plan", "no-such"], capture_output=True, text=True)
            self.assertEqual(wrong.returncode, 2, wrong.stderr)


if __name__ == "__main__":
    unittest.main()
