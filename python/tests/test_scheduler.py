"""Policies in Python."""

import subprocess
import sys
import time
import unittest

import powersweep
from scratch import ScratchCase


class Easy(powersweep.Scheduler):
    """EASY backfilling."""

    def schedule(self, state):
        waiting, free, starts = state.waiting, state.free_procs, []
        head = 0
        while head < len(waiting) and waiting[head].procs <= free:
            free -= waiting[head].procs
            starts.append(head)
            head += 1
        if head == len(waiting):
            return starts
        ends = [(release.at_s, release.procs) for release in state.releases]
        ends += [(state.now_s + job.estimate_s, job.procs) for job in waiting[:head]]
        available, shadow_s = free, float("inf")
        for end_s, procs in sorted(ends, key=lambda end: end[0]):
            if available >= waiting[head].procs and end_s > shadow_s:
                break
            available += procs
            shadow_s = end_s
        extra = available - waiting[head].procs
        for at, job in enumerate(waiting):
            late = state.now_s + job.estimate_s > shadow_s
            if at > head and job.procs <= free and (not late or job.procs <= extra):
                extra -= job.procs if late else 0
                free -= job.procs
                starts.append(at)
        return starts


class Answer(powersweep.Scheduler):
    """Gives one answer at every pass."""

    def __init__(self, answer):
        self.answer = answer

    def schedule(self, state):
        return self.answer(state)


class Schedulers(ScratchCase):
    def test_easy_in_python_is_the_built_in_rule_start_by_start(self):
        for settings in [{}, {"queue_order": "sjf", "event_order": "submit-first"}, {"queue_order": "wfp3"}]:
            with self.subTest(settings):
                common = {"synthetic_jobs_count": 300, "interarrival_factor": 0.7, "seed": 4, "jobs": True, **settings}
                mine = powersweep.simulate(scheduler=Easy(), **common)
                easy = powersweep.simulate(backfill="easy", **common)
                for column in ("start_s", "finish_s", "backfilled"):
                    self.assertEqual(mine.jobs[column], easy.jobs[column], column)
                self.assertEqual((mine["backfill"], mine["wasm_module"]), ("wasm", "python:Easy"))

    def test_it_combines_with_gears_and_caps(self):
        for settings in [
            {"gear_rule": "bsld", "bsld_threshold": 2},
            {"power_cap": "admission", "cap_schedule_share": [0.9, 0.6]},
            {"capacity_rule": "power-save", "suspend_time_s": 600},
        ]:
            with self.subTest(settings):
                row = powersweep.simulate(scheduler=Easy(), synthetic_jobs_count=200, seed=2, **settings)
                self.assertEqual(row["jobs_count"], 200)

    def test_what_it_sees(self):
        seen = []

        class Look(Easy):
            def schedule(self, state):
                seen.append(state)
                return super().schedule(state)

        powersweep.simulate(scheduler=Look(), synthetic_jobs_count=100, interarrival_factor=0.5)
        self.assertTrue(all(state.now_s >= before.now_s for before, state in zip(seen, seen[1:])))
        busy = next(state for state in seen if state.releases and state.waiting)
        self.assertIsInstance(busy, powersweep.State)
        self.assertIsInstance(busy.waiting[0], powersweep.WaitingJob)
        running = sum(release.procs for release in busy.releases)
        self.assertEqual(busy.free_procs + running, busy.machine_procs)
        self.assertGreaterEqual(busy.releases[0].at_s, busy.now_s)

    def test_a_wrong_answer_says_what_is_wrong(self):
        for answer, message in [
            (lambda state: [len(state.waiting)], "starts the waiting job at position"),
            (lambda state: [0, 0], "twice"),
            (lambda state: [-1], r"returned \[-1\]: expected positions"),
            (lambda state: ["0"], "expected positions"),
            (lambda state: None, "returned None: expected positions"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(powersweep.PowersweepError, message) as caught:
                powersweep.simulate(scheduler=Answer(answer), synthetic_jobs_count=20)
            self.assertIn("the policy `python:Answer`", str(caught.exception))
        with self.assertRaises(powersweep.PowersweepError) as caught:
            powersweep.simulate(scheduler=Answer(lambda state: 1 / 0), synthetic_jobs_count=20)
        self.assertIn("raised ZeroDivisionError", str(caught.exception))
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)
        self.assertIsNotNone(caught.exception.__cause__.__traceback__)

    def test_mistakes_before_the_simulation(self):
        with self.assertRaisesRegex(TypeError, "no method `schedule`"):
            powersweep.simulate(scheduler=7)
        with self.assertRaisesRegex(powersweep.UsageError, "takes the place of `backfill`"):
            powersweep.simulate(scheduler=Easy(), backfill="none")

    def test_an_interrupt_ends_the_calls(self):
        # In a process of its own: the interpreter ends right after the interrupt.
        code = """
import os, signal, threading, time, powersweep
calls = 0
class Slow(powersweep.Scheduler):
    def schedule(self, state):
        global calls
        calls += 1
        until = time.process_time() + 0.01
        while time.process_time() < until:
            pass
        return [0] if state.waiting and state.waiting[0].procs <= state.free_procs else []
threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    {call}
except KeyboardInterrupt:
    before = calls
    time.sleep(0.2)
    print("calls", before > 0, calls - before)
"""
        for call in ["simulate(scheduler=Slow(), synthetic_jobs_count=3000, seed=1)", "conformance(Slow())"]:
            with self.subTest(call):
                command = [sys.executable, "-c", code.format(call=f"powersweep.{call}")]
                ended = subprocess.run(command, capture_output=True, text=True)
                self.assertEqual((ended.returncode, ended.stdout), (0, "calls True 0\n"), ended.stderr)

    def test_a_deadline_is_looked_at_before_each_call(self):
        class Slow(Easy):
            def schedule(self, state):
                until = time.process_time() + 0.02
                while time.process_time() < until:
                    pass
                return super().schedule(state)

        begun = time.monotonic()
        with self.assertRaisesRegex(powersweep.PowersweepError, "not finished within 0.5 s"):
            powersweep.simulate(scheduler=Slow(), synthetic_jobs_count=2000, task_deadline="0.5")
        self.assertLess(time.monotonic() - begun, 8)

    def test_conformance(self):
        found = powersweep.conformance(Easy(), workloads=6)
        self.assertTrue(found["conforms"], found)

        class Forgetful(Easy):
            calls = 0

            def schedule(self, state):
                self.calls += 1
                return super().schedule(state) if self.calls < 700 else super().schedule(state)[:1]

        broken = {check["check"] for check in powersweep.conformance(Forgetful(), workloads=6)["checks"] if check["found"]}
        self.assertIn("same bits", broken)


if __name__ == "__main__":
    unittest.main()
