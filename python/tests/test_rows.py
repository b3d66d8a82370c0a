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
        self.assertEqual(len(results(where={"policy": "sjf"})), 0)
        mean = results(select="energy_total_j", by="policy", stat=["mean", "count"])
        self.assertEqual(mean.columns, ["policy", "mean(energy_total_j)", "count(energy_total_j)"])
        self.assertEqual(mean["policy"], ["easy", "fcfs"])

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
        with self.assertRaises(KeyError):
            self.experiment.results(select="seed")["policy"]


if __name__ == "__main__":
    unittest.main()
