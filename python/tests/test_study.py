"""Ask and tell: on a data folder and on a farm whose driver is killed, and the adapters with the real optimisers."""

import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import powersweep
from powersweep import adapters
from scratch import MANIFEST, ScratchCase

STUDY = {
    "version": 1,
    "name": "asked",
    "seeds": [1, 2],
    "designs": {"knobs": {"kind": "points", "points": ""}},
    "workloads": {"synthetic": {"source": "lublin", "synthetic_jobs_count": 100}},
    "platforms": {"cluster": {"size_factor": {"from": 1, "to": 3, "design": "knobs"}}},
    "policies": {
        "slow": {
            "gear_rule": "bsld",
            "bsld_threshold": {"from": 1.5, "to": 6, "scale": "log", "design": "knobs"},
            "wq_threshold": {"values": [0, 4, "unlimited"], "design": "knobs"},
        }
    },
}
METRICS = ["energy_total_j", "bsld_mean"]

#: A driver: Optuna runs 40 trials on the farm at `data`.
DRIVER = """
import sys, optuna, powersweep
from powersweep import adapters
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = powersweep.Study("study.toml", {metrics!r}, data="data")
with study:
    trials = adapters.optuna_study(study, {metrics!r}, sampler=optuna.samplers.TPESampler(seed=int(sys.argv[1])))
    print("known", len(trials.trials), flush=True)
    adapters.run_optuna(study, trials, 40, {metrics!r}, at_once=4)
    print("ended", len(trials.trials), flush=True)
"""


def point(size, threshold=2, wq=0):
    return {"size_factor": size, "bsld_threshold": threshold, "wq_threshold": wq}


def has(library):
    return importlib.util.find_spec(library) is not None


class OnAFolder(ScratchCase):
    def study(self, **changes):
        made = powersweep.Study({**STUDY, **changes}, METRICS, data="data")
        self.addCleanup(made.close)
        return made

    def test_points_are_told_once_and_known_later(self):
        study = self.study()
        asked = study.ask([point(1), point(2, wq=float("inf")), point(1)])
        self.assertFalse(asked[0].done)
        told = study.tell(least=3)
        self.assertEqual([id(of) for of in told], [id(of) for of in asked])
        self.assertEqual(asked[0].means, asked[2].means)
        self.assertEqual((asked[0].seeds, asked[1].values["wq_threshold"]), (2, float("inf")))
        self.assertEqual(study.tell(), [])
        self.assertEqual(len(study.experiment.results(select="seed")), 4)
        study.close()
        with self.assertRaisesRegex(powersweep.UsageError, "the study is closed"):
            study.ask([point(1)])
        again = self.study()
        self.assertEqual(len(again.points(wait=True)), 2)
        self.assertEqual(again.evaluate([point(1)])[0].means, asked[0].means)
        self.assertEqual(len(again.experiment.results(select="seed")), 4)

    def interrupted(self, work, after_s=0.15):
        with self.assertRaises(KeyboardInterrupt):
            threading.Timer(after_s, os.kill, [os.getpid(), signal.SIGINT]).start()
            work()
            # The work of a fast machine ends first.
            time.sleep(60)

    def test_an_interrupt_loses_no_points(self):
        # Some points end before each interrupt.
        workloads = {"synthetic": {"source": "lublin", "synthetic_jobs_count": 20_000}}
        study = self.study(seeds=[1], workloads=workloads)
        asked = study.ask([point(1 + of / 30) for of in range(60)])
        told = []
        self.interrupted(lambda: told.extend(study.tell(least=60)))
        self.interrupted(lambda: study.evaluate([point(1 + of / 30, 3) for of in range(60)]))
        # The interrupted evaluate may have asked for its points or not.
        while more := study.tell(timeout_s=60):
            told += more
        self.assertEqual(len({id(of) for of in told}), len(told))
        self.assertLessEqual({id(of) for of in asked}, {id(of) for of in told})

    def test_a_warning_that_is_an_error_loses_no_points(self):
        study = self.study()
        asked = study.ask([point(1)])

        def fail(native, least, timeout_s):
            native.tell(least, timeout_s)
            raise powersweep.PowersweepWarning("an error")

        native, study._native = study._native, unittest.mock.Mock(wraps=study._native)
        study._native.tell.side_effect = lambda *of: fail(native, *of)
        with self.assertRaises(powersweep.PowersweepWarning):
            study.tell()
        study._native = native
        self.assertEqual([id(of) for of in study.tell()], [id(of) for of in asked])

    def test_a_study_that_nobody_closes_ends(self):
        threads = lambda: len(os.listdir("/proc/self/task"))
        before = threads()
        study = powersweep.Study(STUDY, METRICS, data="data")
        study.evaluate([point(1)])
        self.assertGreater(threads(), before)
        del study
        deadline = time.monotonic() + 20
        while threads() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertLessEqual(threads(), before)
        powersweep.run(MANIFEST, data="data", quiet=True)

    def test_where_chooses_rows_and_a_point_ends(self):
        with powersweep.Study(STUDY, METRICS, data="data", where={"seed": 1}) as study:
            (found,) = study.evaluate([point(1)])
            self.assertEqual(found.seeds, 1)
            row = study.experiment.results(select=METRICS, where={"seed": 1}).to_dicts()[0]
            self.assertEqual(found.means, row)

    def test_notes_of_its_begin_are_warnings(self):
        (self.folder / "powersweep.toml").write_text("")
        (self.folder / "powersweep.toml").chmod(0o666)
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "powersweep.toml is ignored") as caught:
            self.study()
        self.assertEqual(caught.filename, __file__)

    def test_relative_power_is_a_warning(self):
        study = self.study()
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "power is relative"):
            study.evaluate([point(1)])

    def test_no_slots_are_all_processors(self):
        with powersweep.Study(STUDY, METRICS, data="data", slots=0) as study:
            self.assertEqual(study.evaluate([point(1)])[0].seeds, 2)

    def test_a_failed_point_is_named(self):
        platforms = {"cluster": {"size_factor": {"from": 0.1, "to": 3, "design": "knobs"}}}
        failed, sound = self.study(platforms=platforms).evaluate([point(0.1), point(1)])
        self.assertIn("2 tasks failed", failed.failure)
        with self.assertRaisesRegex(powersweep.TasksFailedError, "'size_factor': 0.1"):
            failed.means
        self.assertIsNone(sound.failure)
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "failed: 2 tasks"):
            self.assertIsNone(adapters.costs(failed, METRICS))
        self.assertEqual(adapters.costs(sound, "bsld_mean", "energy_total_j")[1], -sound.means["energy_total_j"])
        with self.assertRaisesRegex(powersweep.UsageError, "`wait_s_mean` is no metric of the study"):
            adapters.costs(sound, "wait_s_mean")
        with self.assertRaisesRegex(powersweep.UsageError, "there is no goal"):
            adapters.costs(sound)

    def test_a_point_without_a_mean_is_named(self):
        with powersweep.Study(STUDY, METRICS, data="data", where={"seed": 3}) as study:
            (found,) = study.evaluate([point(1)])
            with self.assertWarnsRegex(powersweep.PowersweepWarning, "no mean of energy_total_j, bsld_mean"):
                self.assertIsNone(adapters.costs(found, METRICS))

    def test_several_designs_and_workloads(self):
        slow = STUDY["policies"]["slow"]
        of = {"from": 2, "to": 3, "design": "capped"}
        study = self.study(
            designs={"knobs": {"kind": "points", "points": ""}, "capped": {"kind": "points", "points": ""}},
            platforms={"cluster": {"size_factor": 1}},
            policies={"slow": slow, "capped": {"backfill": "none", "gear_rule": "bsld", "bsld_threshold": of}},
            workloads={**STUDY["workloads"], "other": {"source": "lublin", "synthetic_jobs_count": 50}},
        )
        self.assertEqual(list(study.ranges), ["capped", "knobs"])
        with self.assertRaisesRegex(powersweep.UsageError, "name one of capped, knobs"):
            study.ask([{"bsld_threshold": 2}])
        with self.assertRaisesRegex(powersweep.UsageError, "name one of capped, knobs"):
            study.at([0.5])
        with self.assertRaisesRegex(powersweep.UsageError, "no design of points `x`"):
            study.at([0.5], design="x")
        self.assertEqual(study.at([1], design="capped"), {"bsld_threshold": 3})
        (found,) = study.evaluate([{"bsld_threshold": 2}], design="capped")
        self.assertEqual([of["group"]["workload"] for of in found.groups], ["other", "synthetic"])
        with self.assertRaisesRegex(powersweep.UsageError, "2 groups of tasks, which differ in"):
            found.means
        self.assertEqual(len(study.experiment.results(select="seed")), 4)

    def test_ranges_and_wrong_points(self):
        study = self.study()
        size, threshold, wq = (next(of for of in study.ranges["knobs"] if of.parameter == name) for name in point(1))
        self.assertEqual((size.low, size.high, size.log, size.choices), (1.0, 3.0, False, None))
        self.assertTrue(threshold.log)
        self.assertEqual(wq.choices, [0, 4, float("inf")])
        self.assertEqual(study.at([0, 0.5, 1])["size_factor"], 2)
        for wrong, reason in [({"size_factor": 1}, "has no value"), (point(4), "`size_factor` is 4, outside of 1 to 3")]:
            with self.assertRaisesRegex(powersweep.UsageError, reason):
                study.ask([wrong])
        with self.assertRaisesRegex(TypeError, "type NoneType"):
            study.ask([point(None)])
        with self.assertRaisesRegex(powersweep.UsageError, "too great"):
            study.ask([point(2**70)])
        with self.assertRaisesRegex(powersweep.UsageError, "too small"):
            powersweep.Study(STUDY, METRICS, data="data", slots=-1)
        with self.assertRaisesRegex(powersweep.UsageError, "`policy` has no numbers"):
            powersweep.Study(STUDY, ["bsld_mean", "policy"], data="data")
        with self.assertRaisesRegex(powersweep.UsageError, "no design of listed points"):
            powersweep.Study({**STUDY, "designs": {"knobs": {"kind": "sobol", "count": 4}}}, METRICS, data="data")


class WithOptimisers(ScratchCase):
    def study(self):
        made = powersweep.Study(STUDY, METRICS, data="data")
        self.addCleanup(made.close)
        return made

    @unittest.skipUnless(has("optuna"), "optuna is not installed")
    def test_optuna_is_refilled_from_the_rows(self):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = self.study()
        trials = adapters.optuna_study(study, METRICS, sampler=optuna.samplers.TPESampler(seed=1))
        adapters.run_optuna(study, trials, 12, METRICS, at_once=4)
        self.assertEqual(len(trials.trials), 12)
        rows = len(study.experiment.results(select="seed"))
        greatest = adapters.optuna_study(study, maximise="bsld_mean")
        self.assertEqual(greatest.best_value, max(of.means["bsld_mean"] for of in study.points()))
        with self.assertRaisesRegex(powersweep.UsageError, "the directions of Optuna's study are not minimize"):
            adapters.run_optuna(study, greatest, 20, "bsld_mean")
        with self.assertRaisesRegex(powersweep.UsageError, "leave out those of Optuna"):
            adapters.optuna_study(study, "bsld_mean", direction="maximize")
        with self.assertRaisesRegex(powersweep.UsageError, "is no metric of the study"):
            adapters.optuna_study(study, "bsld_maen")
        again = adapters.optuna_study(study, METRICS)
        self.assertEqual(len(again.trials), rows // 2)
        values = {tuple(trial.values) for trial in again.trials}
        self.assertEqual(values, {tuple(trial.values) for trial in trials.trials})

    @unittest.skipUnless(has("optuna"), "optuna is not installed")
    def test_a_range_that_all_designs_have_is_one_parameter(self):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        slow = STUDY["policies"]["slow"]
        other = {**slow, "backfill": "none", "wq_threshold": {"values": [0, 4], "design": "other"}}
        other["bsld_threshold"] = {**slow["bsld_threshold"], "design": "other"}
        study = powersweep.Study(
            {
                **STUDY,
                "designs": {name: {"kind": "points", "points": ""} for name in ("knobs", "other")},
                "platforms": {"cluster": {"size_factor": 1}},
                "policies": {"slow": slow, "other": other},
            },
            METRICS,
            data="data",
        )
        self.addCleanup(study.close)
        study.evaluate([{"bsld_threshold": 2, "wq_threshold": 0}], design="knobs")
        trials = adapters.optuna_study(study, METRICS, sampler=optuna.samplers.RandomSampler(seed=1))
        adapters.run_optuna(study, trials, 8, METRICS)
        names = {frozenset(trial.params) for trial in trials.trials}
        both = {"design", "bsld_threshold"}
        self.assertEqual(names, {frozenset(both | {f"{of}.wq_threshold"}) for of in study.ranges})

    @unittest.skipUnless(has("pymoo"), "pymoo is not installed")
    def test_pymoo_finds_a_front_whose_hypervolume_is_ours(self):
        from pymoo.algorithms.moo.nsga2 import NSGA2
        from pymoo.indicators.hv import HV
        from pymoo.optimize import minimize

        study = self.study()
        found = minimize(adapters.pymoo_problem(study, METRICS), NSGA2(pop_size=8), ("n_gen", 3), seed=1)
        self.assertGreater(len(found.F), 0)
        reference = [max(of) for of in zip(*([point.means[name] for name in METRICS] for point in study.points()))]
        costs = [[point.means[name] for name in METRICS] for point in study.points()]
        import numpy

        ours = study.experiment.hypervolume(minimise=METRICS)
        self.assertAlmostEqual(ours / HV(ref_point=numpy.array(reference))(numpy.array(costs)), 1, places=12)

    @unittest.skipUnless(has("scipy"), "scipy is not installed")
    def test_scipy_evolves_populations_and_draws_points(self):
        from scipy.optimize import differential_evolution
        from scipy.stats import qmc

        study = self.study()
        for goals, message in [([], "there is no goal"), (METRICS, "SciPy has one goal, not energy_total_j, bsld_mean")]:
            with self.assertRaisesRegex(powersweep.UsageError, message):
                adapters.scipy_objective(study, goals)
        objective = adapters.scipy_objective(study, "energy_total_j")
        found = differential_evolution(
            objective, [(0, 1)] * 3, vectorized=True, updating="deferred", maxiter=2, popsize=4, polish=False, seed=1
        )
        least = min(point.means["energy_total_j"] for point in study.points())
        self.assertEqual(found.fun, least)
        drawn = objective(qmc.Sobol(3, seed=1).random(4).T)
        self.assertEqual(drawn.shape, (4,))


class OnAFarm(ScratchCase):
    def start(self, *arguments, **options):
        child = subprocess.Popen([sys.executable, *arguments], text=True, **options)
        # Cleanups run in reverse: a pipe is closed once nothing reads it.
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                self.addCleanup(pipe.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def farm(self):
        """A coordinator and two workers, which log the tasks that they start."""
        server = self.start("-m", "powersweep", "serve", "--data", "data", "--listen", "127.0.0.1:0", stderr=subprocess.PIPE)
        for line in server.stderr:
            if "serving" in line:
                break
        threading.Thread(target=server.stderr.read, daemon=True).start()
        logs = []
        for number in range(2):
            logs.append(pathlib.Path(f"worker-{number}.log"))
            log = logs[-1].open("w")
            self.addCleanup(log.close)
            environment = {**os.environ, "POWERSWEEP_LOG": "powersweep_worker::journal=trace"}
            self.start(
                "-m", "powersweep", "worker", "--data", "data", "--slots", "1", "--name", f"w{number}",
                stderr=log, env=environment,
            )  # fmt: skip
        return logs

    @unittest.skipUnless(has("optuna"), "optuna is not installed")
    def test_a_driver_that_is_killed_five_times_simulates_each_point_once(self):
        text = powersweep._native.manifest_text(STUDY).replace("synthetic_jobs_count = 100", "synthetic_jobs_count = 3000")
        pathlib.Path("study.toml").write_text(text)
        logs = self.farm()
        code, known = DRIVER.format(metrics=METRICS), []
        for kill in range(6):
            driver = self.start("-c", code, str(kill), stdout=subprocess.PIPE)
            known.append(int(driver.stdout.readline().split()[1]))
            if kill == 5:
                rest = driver.stdout.read()
                self.assertEqual(driver.wait(), 0)
                self.assertIn("ended 40", rest)
            else:
                deadline = time.monotonic() + 60
                before = self.rows()
                while self.rows() < before + 6 and time.monotonic() < deadline:
                    time.sleep(0.02)
                driver.send_signal(signal.SIGKILL)
                driver.wait()
        self.assertEqual(known, sorted(known))
        self.assertGreater(known[5], known[1])
        rows = powersweep.Experiment("asked", data="data").results(select=["task_id", "size_factor", "seed"])
        self.assertEqual(len(set(rows["task_id"])), len(rows))
        self.assertGreaterEqual(len(rows), 2 * 35)
        started = [found for log in logs for found in re.findall("journal: started", log.read_text())]
        self.assertEqual(len(started), len(rows), "each task started once")

    def rows(self):
        try:
            return powersweep.Experiment("asked", data="data").status()["done"]
        except powersweep.PowersweepError:
            return 0


if __name__ == "__main__":
    unittest.main()
