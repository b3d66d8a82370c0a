"""Other libraries read the rows, with pyarrow and without."""

import datetime
import importlib.util
import math
import os
import unittest

import powersweep
from scratch import MANIFEST, ScratchCase

# Set where pyarrow must not be installed.
WITHOUT_PYARROW = os.environ.get("POWERSWEEP_WITHOUT_PYARROW") == "1"


def needs(*libraries):
    missing = [library for library in libraries if importlib.util.find_spec(library) is None]
    return unittest.skipIf(missing, f"{', '.join(missing)} is not installed")


class Rows(ScratchCase):
    def setUp(self):
        super().setUp()
        self.experiment = powersweep.run(MANIFEST, quiet=True)

    def columns(self, rows):
        return {name: rows[name] for name in rows.columns}

    @unittest.skipUnless(WITHOUT_PYARROW, "pyarrow may be installed here")
    def test_pyarrow_is_not_installed(self):
        self.assertIsNone(importlib.util.find_spec("pyarrow"))

    @needs("polars")
    def test_polars_reads_all_columns(self):
        import polars

        rows = self.experiment.results()
        frame = polars.DataFrame(rows)
        self.assertEqual(frame.columns, rows.columns)
        self.assertEqual(frame.to_dict(as_series=False), self.columns(rows))
        self.assertEqual(rows.to_polars().shape, (6, len(rows.columns)))

    @needs("duckdb")
    def test_duckdb_reads_rows_as_often_as_it_wants(self):
        import duckdb

        rows = self.experiment.results(select=["policy", "seed", "energy_total_j"])
        self.assertTrue(rows)
        for _ in range(2):
            found = duckdb.sql("SELECT policy, count(*), sum(energy_total_j) FROM rows GROUP BY 1 ORDER BY 1").fetchall()
            self.assertEqual([(policy, count) for policy, count, _ in found], [("easy", 3), ("fcfs", 3)])
            self.assertTrue(math.isclose(sum(energy for *_, energy in found), sum(rows["energy_total_j"])))

    @needs("pyarrow")
    def test_pyarrow_reads_types_and_descriptions(self):
        import pyarrow

        rows = self.experiment.results()
        table = pyarrow.table(rows)
        table.validate(full=True)
        self.assertEqual(table.to_pylist(), rows.to_dicts())
        self.assertEqual(pyarrow.schema(rows), table.schema)
        self.assertEqual(table.field("energy_total_j").metadata[b"unit"], b"J")
        self.assertEqual(table.field("started_at").type, pyarrow.timestamp("us", "UTC"))

    @needs("pandas", "pyarrow")
    def test_pandas_reads_rows(self):
        import pandas

        rows = self.experiment.results(select=["seed", "energy_total_j"])
        frame = pandas.DataFrame.from_arrow(rows)
        self.assertEqual(frame["energy_total_j"].tolist(), rows["energy_total_j"])
        self.assertEqual(rows.to_pandas().shape, (6, 2))

    def test_values_are_pythons(self):
        row = self.experiment.results(rows=1).to_dicts()[0]
        self.assertIs(type(row["seed"]), int)
        self.assertIs(type(row["energy_total_j"]), float)
        self.assertIs(type(row["policy"]), str)
        self.assertIsNone(row["log"])
        self.assertIsInstance(row["gears_ghz"], list)
        age = datetime.datetime.now(datetime.timezone.utc) - row["started_at"]
        self.assertTrue(datetime.timedelta(0) < age < datetime.timedelta(minutes=10), age)

    def test_rows_outlive_their_files(self):
        rows = self.experiment.results(select="seed")
        stream = rows.__arrow_c_stream__()
        del rows, self.experiment
        self.assertIn("arrow_array_stream", repr(stream))

    def test_results_choose_rows_and_columns(self):
        results = self.experiment.results
        self.assertEqual(results(select=["seed", "policy"], where={"policy": "easy"}).columns, ["seed", "policy"])
        self.assertEqual(results(select="seed", where=["seed > 1", "policy=easy"])["seed"], [2, 3])
        self.assertEqual(results(select="seed", where={"policy": "easy"}, sort="seed", descending=True, rows=2)["seed"], [3, 2])
        self.assertEqual(results(select="seed", skip=1, where="policy=fcfs")["seed"], [2, 3])
        with self.assertRaisesRegex(powersweep.UsageError, "no row satisfies `policy=easi`: policy is easy.*did you mean"):
            results(where={"policy": "easi"})
        with self.assertRaisesRegex(powersweep.UsageError, r"no row satisfies `policy=\[easy,fcfs\]`"):
            results(where={"policy": ["easy", "fcfs"]})
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "no row satisfies `seed>3`: seed"):
            self.assertEqual(len(results(where="seed>3")), 0)
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "no rows follow those that are left out"):
            self.assertEqual(len(results(where="seed>1", skip=10)), 0)
        self.assertEqual(len(results(where="seed>3", rows=0)), 0)
        mean = results(select="energy_total_j", by="policy", stat=["mean", "count"])
        self.assertEqual(mean.columns, ["policy", "mean(energy_total_j)", "count(energy_total_j)"])
        self.assertEqual(mean["policy"], ["easy", "fcfs"])

    def test_two_sets_of_rows_are_compared_pair_by_pair(self):
        results, compare = self.experiment.results, self.experiment.compare
        found = compare({"policy": "easy"}, {"policy": "fcfs"}, select=["energy_total_j", "wait_s_mean"])
        self.assertEqual(found["metric"], ["energy_total_j", "wait_s_mean"])
        self.assertEqual((found["unit"], found["pairs"]), (["relative", "s"], [3, 3]))
        easy, fcfs = (results(select="wait_s_mean", where={"policy": policy})["wait_s_mean"] for policy in ("easy", "fcfs"))
        row = found.to_dicts()[1]
        self.assertTrue(math.isclose(row["mean_a"], sum(easy) / 3) and math.isclose(row["mean_b"], sum(fcfs) / 3))
        self.assertTrue(math.isclose(row["ratio"], sum(fcfs) / sum(easy)))
        self.assertTrue(row["ratio_low"] <= row["ratio"] <= row["ratio_high"])
        self.assertEqual(row["a_less"], sum(a < b for a, b in zip(easy, fcfs)) / 3)
        self.assertGreater(len(compare("policy=easy", ["policy=fcfs", "seed<3"], where="seed<3")), 2)
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "1 row of A and 0 of B have no partner") as caught:
            self.assertEqual(compare({"policy": "easy"}, ["policy=fcfs", "seed<3"], select="wait_s_mean")["pairs"], [2])
        self.assertEqual(caught.filename, __file__)
        other = powersweep.run({**MANIFEST, "name": "other", "seeds": [1, 2]}, quiet=True)
        same = other.compare({"policy": "easy"}, ["policy=easy", "seed<3"], other="sweep", select="wait_s_mean")
        self.assertEqual((same["pairs"], same["ratio"]), ([2], [1.0]))
        for arguments, message in [
            ({"select": "wait_mean"}, "did you mean `?wait_s_mean"),
            ({"table": "failures"}, "nothing to compare"),
            ({"other": "sweeep"}, "did you mean `sweep`"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(powersweep.UsageError, message):
                compare({"policy": "easy"}, {"policy": "fcfs"}, **arguments)

    def test_two_sets_of_rows_are_compared_with_shaken_input(self):
        found = self.experiment.compare({"policy": "easy"}, {"policy": "fcfs"}, select="wait_s_mean", shaken=60)
        self.assertEqual((found["metric"], found["pairs"]), (["wait_s_mean"], [10]))
        shaken = powersweep.results("sweep-shaken", select=["seed", "submit_jitter_s"])
        self.assertEqual((len(shaken), set(shaken["submit_jitter_s"])), (20, {60.0}))
        with self.assertRaisesRegex(powersweep.UsageError, "did you mean `?wait_s_mean"):
            self.experiment.compare({"policy": "easy"}, {"policy": "fcfs"}, select="wait_mean", shaken=60)

    def test_the_best_combinations_are_found(self):
        best = self.experiment.best
        waits = {row["policy"]: row["mean(wait_s_mean)"] for row in self.experiment.results(select="wait_s_mean", by="policy", stat="mean").to_dicts()}
        found = best(minimise="wait_s_mean")
        self.assertEqual(found["policy"], [min(waits, key=waits.get)])
        self.assertEqual(best(maximise="wait_s_mean", by="policy")["policy"], [max(waits, key=waits.get)])
        self.assertEqual(best(minimise="wait_s_mean", by="policy", top=5)["policy"], sorted(waits, key=waits.get))
        self.assertEqual(len(best(minimise="wait_s_mean", where={"policy": "fcfs"}, by="policy")), 1)
        with self.assertRaisesRegex(powersweep.UsageError, "no row satisfies `policy=sjf`: policy is easy, fcfs"):
            best(minimise="wait_s_mean", where={"policy": "sjf"})
        front = best(minimise=["wait_s_mean", "energy_total_j"], by="policy")
        self.assertIn(min(waits, key=waits.get), front["policy"])
        limit = (waits["easy"] + waits["fcfs"]) / 2
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "1 of 2 combinations satisfies the conditions"):
            self.assertEqual(len(best(minimise="energy_total_j", by="policy", subject_to=f"wait_s_mean <= {limit}")), 1)
        with self.assertRaisesRegex(powersweep.PowersweepError, "none of 2 combinations satisfies the conditions"):
            best(minimise="energy_total_j", by="policy", subject_to="wait_s_mean < 0")
        with self.assertRaisesRegex(powersweep.UsageError, "there is no goal"):
            best()

    def test_a_preset_is_alone(self):
        with self.assertRaisesRegex(powersweep.UsageError, "`preset` cannot be used with `by`"):
            self.experiment.results(preset="table3", by="policy")
        with self.assertRaisesRegex(powersweep.UsageError, "unknown preset|no paper|unknown paper"):
            self.experiment.results(preset="etinski2010/table33")

    def test_configurations_and_variables_give_defaults(self):
        (self.folder / "results").rename(self.folder / "elsewhere")
        with self.assertRaisesRegex(powersweep.UsageError, "there is no"):
            self.experiment.results()
        (self.folder / "powersweep.toml").write_text('data = "elsewhere/data"\n')
        self.assertEqual(len(self.experiment.results()), 6)
        os.environ["POWERSWEEP_DATA"] = "nowhere"
        with self.assertRaisesRegex(powersweep.UsageError, "there is no .*nowhere"):
            self.experiment.results()
        self.assertEqual(len(powersweep.results("sweep", data=self.folder / "elsewhere" / "data")), 6)
        (self.folder / "powersweep.toml").chmod(0o666)
        del os.environ["POWERSWEEP_DATA"]
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "powersweep.toml is ignored"):
            self.assertEqual(len(powersweep.results("sweep", data="elsewhere/data")), 6)
        (self.folder / "powersweep.toml").chmod(0o600)
        (self.folder / "powersweep.toml").write_text("dat = 1\n")
        with self.assertRaisesRegex(powersweep.UsageError, "a configuration has no key `dat`"):
            self.experiment.status()
        (self.folder / "powersweep.toml").unlink()
        os.environ["POWERSWEEP_CACHE_SIZE"] = "much"
        with self.assertRaisesRegex(powersweep.UsageError, "invalid value 'much' for '--cache-size"):
            powersweep.simulate(synthetic_jobs_count=5)

    def test_a_note_is_a_warning_at_the_callers_line(self):
        with self.assertWarnsRegex(powersweep.PowersweepWarning, "differ in policy") as caught:
            self.experiment.results(select="energy_total_j", by="seed")
        self.assertEqual(caught.filename, __file__)

    def test_mistakes_are_explained(self):
        with self.assertRaisesRegex(powersweep.UsageError, "did you mean `energy_total_j`"):
            self.experiment.results(select="energy_total")
        with self.assertRaisesRegex(powersweep.UsageError, "there is no experiment sweeep; did you mean `sweep`"):
            powersweep.results("sweeep")
        with self.assertRaisesRegex(powersweep.UsageError, "(?s)--table.*possible values: tasks"):
            self.experiment.results(table="task")
        with self.assertRaisesRegex(powersweep.UsageError, "--pivot.*--by"):
            self.experiment.results(pivot="policy")
        with self.assertRaisesRegex(powersweep.UsageError, "a number is too small"):
            self.experiment.results(rows=-1)
        rows = self.experiment.results(select="seed")
        with self.assertRaisesRegex(KeyError, "no column `policy`"):
            rows["policy"]
        self.assertEqual((list(rows), "seed" in rows, "policy" in rows, 1 in rows), (["seed"], True, False, False))
        with self.assertRaisesRegex(TypeError, "expected a name, not None"):
            self.experiment.results(select=[None])

    @needs("numpy", "pandas")
    def test_values_of_other_libraries_are_taken(self):
        import numpy
        import pandas

        results = self.experiment.results
        self.assertEqual(results(select=pandas.Index(["seed", "policy"]), rows=1).columns, ["seed", "policy"])
        self.assertEqual(len(results(where={"seed": numpy.int64(2)})), 2)
        with self.assertRaises(powersweep.UsageError):
            results(where={"seed": numpy.array([1, 2])})

    def test_mistakes_in_figures_are_explained(self):
        for arguments, message in [
            ({}, "--figure KIND"),
            ({"figure": "bar"}, "unknown kind of figure `bar`; did you mean `bars`"),
            ({"figure": "bars", "x": "policy"}, "needs a vertical axis"),
            ({"figure": "cdf"}, "needs one column"),
            ({"figure": "cdf", "x": "seed,policy"}, "needs one column"),
            ({"figure": "heatmap", "x": "seed", "y": "policy", "colour": "seed"}, "no --colour"),
            ({"figure": "parallel", "x": ["seed", "policy"], "facet": "seed"}, "no --facet"),
            ({"figure": "cdf", "x": "wait_s_mean", "log": "z"}, "possible values: x, y"),
            ({"figure": "cdf", "x": "wait_s_mean", "width": "narrow"}, "possible values: column, page"),
            ({"figure": "gantt", "between": (2, 1)}, "two numbers of seconds"),
            ({"figure": "lines", "x": "seed", "y": "wait_s_mean", "between": (1, 2)}, "`between` is for .*series or gantt, not lines"),
            ({"figure": "bars", "x": "policy", "y": "wait_s_mean", "maximise": "y"}, "`maximise` is for figures of the kind pareto"),
            ({"preset": "figure3", "x": "seed"}, "`preset` cannot be used with `x`"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(powersweep.UsageError, message):
                self.experiment.plot(**arguments)


if __name__ == "__main__":
    unittest.main()
