#!/usr/bin/env python3
"""Compares the sweep etinski2010 with the numbers that Etinski et al. 2010 printed.

    pip install duckdb
    python results/queries/etinski2010_check.py [DATA]

DATA is the data root (default results/data). Each line: claim, published, ours, tolerance, verdict. Claims marked
`reported` hold in no reading of the paper that we know, or were not stated exactly; they are shown, not demanded.
Exit code 0: every demanded claim holds; 1: one does not, or its runs are missing; 2: no results.
"""
import math
import sys

import duckdb

WORKLOADS = ["CTC", "SDSC", "SDSCBlue", "LLNLThunder", "LLNLAtlas"]
NO_LIMIT = math.inf
THRESHOLDS = [(bsld, wq) for bsld in (1.5, 2.0, 3.0) for wq in (0.0, 4.0, 16.0, NO_LIMIT)]
SIZES = [1.0, 1.1, 1.2, 1.5, 1.75, 2.0, 2.25]

# Energies are normalised here, against the original machine at full speed; the rows hold joules.
RUNS = """
with runs as (from read_parquet('{data}/etinski2010/tasks/*.parquet')),
base as (
    select workload, energy_computational_j as computational_j, energy_total_j as total_j
    from runs where gear_rule = 'top' and size_factor = 1
)
select workload, size_factor, bsld_threshold, wq_threshold, bsld_tau600s_mean, wait_s_mean, reduced_count,
    energy_computational_j / computational_j, energy_total_j / total_j
from runs join base using (workload)
"""


class Run:
    """The metrics of one run."""

    def __init__(self, bsld, wait, reduced, computational, total):
        self.bsld, self.wait, self.reduced, self.computational, self.total = bsld, wait, reduced, computational, total


class Runs:
    """All runs by workload, thresholds and size."""

    def __init__(self, data):
        self.by_key = {}
        for workload, size, bsld, wq, *metrics in duckdb.sql(RUNS.format(data=data)).fetchall():
            key = (workload, bsld, wq, size)
            if key in self.by_key:
                raise SystemExit(f"two rows for {key}: the experiment has been run with other parameters too")
            self.by_key[key] = Run(*metrics)

    def top(self, workload):
        """At full speed on the original machine."""
        return self.by_key[workload, None, None, 1.0]

    def saving(self, workload, bsld, wq, size=1.0):
        """With lowered frequencies."""
        return self.by_key[workload, float(bsld), float(wq), size]


class Report:
    """Prints claims and remembers whether a demanded one failed."""

    def __init__(self):
        self.failed = 0
        print(f"{'claim':<72} {'published':>12} {'ours':>12} {'tolerance':>10}  verdict")

    def claim(self, text, published, ours, tolerance, holds, demanded=True):
        verdict = "ok" if holds else "FAILS"
        if not demanded:
            verdict = "reported, holds" if holds else "reported, differs"
        self.failed += demanded and not holds
        show = lambda x: x if isinstance(x, str) else f"{x:.7g}"
        print(f"{text:<72} {show(published):>12} {show(ours):>12} {tolerance:>10}  {verdict}")

    def number(self, text, published, ours, relative=None, absolute=None, demanded=True):
        """A published number that ours must be near."""
        allowed = abs(published) * relative if relative is not None else absolute
        tolerance = f"{relative:.3g} rel" if relative is not None else f"{absolute:g}"
        self.claim(text, published, ours, tolerance, abs(ours - published) <= allowed, demanded)

    def attempt(self, part, runs):
        """Runs one part; runs that are missing fail it."""
        try:
            part(self, runs)
        except KeyError as missing:
            self.failed += 1
            print(f"{part.__doc__:<72} missing run {missing.args[0]}")


def anchors(report, runs):
    """Reference values of the reading that powersweep implements"""
    def value(text, reference, ours, half_digit):
        allowed = max(1e-6 * reference, half_digit)
        report.claim(f"reference: {text}", reference, ours, f"{allowed:.1e}", abs(ours - reference) <= allowed)

    for workload, bsld, wait, digit in [("CTC", 4.520238, 7786.753, 5e-4), ("LLNLAtlas", 1.072983, 68.8172, 5e-5)]:
        value(f"{workload} full speed, BSLD", bsld, runs.top(workload).bsld, 5e-7)
        value(f"{workload} full speed, wait (s)", wait, runs.top(workload).wait, digit)
    for workload, bsld, wq, wait, reduced, computational, total in [
            ("CTC", 2, NO_LIMIT, 17244.31, 3592, 0.82667, 0.80156),
            ("LLNLThunder", 1.5, 4, 1425.94, 1962, 0.92763, 0.91954)]:
        run, name = runs.saving(workload, bsld, wq), f"{workload} {bsld:g}/{wq:g}"
        value(f"{name}, wait (s)", wait, run.wait, 5e-3)
        report.number(f"reference: {name}, reduced jobs", reduced, run.reduced, absolute=0)
        value(f"{name}, computational energy", computational, run.computational, 5e-6)
        value(f"{name}, total energy", total, run.total, 5e-6)


def table1(report, runs):
    """Table 1: BSLD at full speed"""
    for workload, published in zip(WORKLOADS, [4.66, 24.91, 5.15, 1.0, 1.08]):
        report.number(f"Table 1: {workload}, BSLD at full speed", published, runs.top(workload).bsld, relative=0.05)


def table3(report, runs):
    """Table 3: waits"""
    published = {"CTC": [7107, 12361, 16060, 2980, 4183], "SDSC": [36001, 35946, 45845, 9202, 11713],
                 "SDSCBlue": [4798, 6587, 8766, 2351, 3153], "LLNLThunder": [0, 1927, 6876, 379, 1877],
                 "LLNLAtlas": [69, 1841, 6691, 708, 2807]}
    for workload, row in published.items():
        near = workload in ("CTC", "SDSC", "SDSCBlue")
        ours = [("full speed", runs.top(workload))]
        ours += [(f"2/{wq:g} size {size:g}", runs.saving(workload, 2, wq, size)) for size in (1.0, 1.5)
                 for wq in (0, NO_LIMIT)]
        for wait, (name, run) in zip(row, ours):
            text = f"Table 3: {workload} {name}, wait (s)"
            if not near and name == "full speed":
                report.number(text, wait, run.wait, absolute=1)
            else:
                report.number(text, wait, run.wait, relative=0.2, demanded=near)


def thresholds(report, runs):
    """Section 5.1: a higher threshold need not save more"""
    low, high = runs.saving("LLNLThunder", 1.5, 4), runs.saving("LLNLThunder", 2, 4)
    saved = lambda run: f"{1 - run.computational:.4f}"
    report.claim("LLNLThunder: 1.5/4 saves more computational energy than 2/4", ">", f"{saved(low)}>{saved(high)}", "",
                 low.computational < high.computational)
    report.claim("LLNLThunder: 1.5/4 lowers more jobs than 2/4", ">", f"{low.reduced}>{high.reduced}", "",
                 low.reduced > high.reduced)
    low, high = runs.saving("LLNLAtlas", 1.5, 0), runs.saving("LLNLAtlas", 2, 0)
    report.claim("LLNLAtlas: 1.5/0 needs less energy than 2/0", "<", f"{low.computational:.4f}<{high.computational:.4f}",
                 "", low.computational < high.computational and low.total < high.total)
    report.claim("LLNLAtlas: 1.5/0 has a lower BSLD than 2/0", "<", f"{low.bsld:.4f}<{high.bsld:.4f}", "",
                 low.bsld < high.bsld)


def savings(report, runs):
    """Section 5.1: savings on the original machine"""
    for workload in WORKLOADS:
        best = max(1 - runs.saving(workload, *t).computational for t in THRESHOLDS)
        if workload == "SDSC":
            report.claim("SDSC: saves less than 6% of computational energy at any threshold", "<0.06", best, "",
                         best < 0.06)
        else:
            report.claim(f"{workload}: saves 10% of computational energy or more at some threshold", ">=0.10", best, "",
                         best >= 0.10)


def enlarged(report, runs):
    """Section 5.2: enlarged machines"""
    for workload in WORKLOADS:
        totals = [runs.saving(workload, 2, NO_LIMIT, size).total for size in SIZES]
        report.claim(f"{workload}: total energy at +125% (2/no limit) is above its minimum", ">",
                     f"{totals[-1]:.4f}>{min(totals):.4f}", "", totals[-1] > min(totals))


def reported(report, runs):
    """Claims that are reported, not demanded"""
    for workload, bsld, wq, count in [("LLNLThunder", 1.5, 4, 1219), ("LLNLThunder", 2, 4, 854),
                                      ("SDSCBlue", 2, NO_LIMIT, 2778), ("SDSCBlue", 3, NO_LIMIT, 2654)]:
        report.number(f"{workload} {bsld:g}/{wq:g}, reduced jobs", count, runs.saving(workload, bsld, wq).reduced,
                      absolute=0, demanded=False)
    for bsld, published in [(1.5, 0.0895), (2, 0.0379)]:
        report.number(f"LLNLThunder {bsld:g}/4, computational energy saved", published,
                      1 - runs.saving("LLNLThunder", bsld, 4).computational, absolute=5e-5, demanded=False)
    means = [sum(1 - runs.saving(w, *t).computational for w in WORKLOADS) / len(WORKLOADS) for t in THRESHOLDS]
    report.claim("mean saving over the workloads, least and greatest threshold", "0.07-0.18",
                 f"{min(means):.3f}-{max(means):.3f}", "0.005", abs(min(means) - 0.07) <= 0.005
                 and abs(max(means) - 0.18) <= 0.005, demanded=False)
    best = max(1 - runs.saving(w, 3, NO_LIMIT).computational for w in WORKLOADS)
    report.number("greatest saving at 3/no limit on the original machine", 0.22, best, absolute=0.005, demanded=False)
    for size, bound, text in [(1.2, 0.25, "more than 25%"), (1.5, 0.35, "up to 35%")]:
        best = max(1 - runs.saving(w, 2, wq, size).computational for w in WORKLOADS for wq in (0, NO_LIMIT))
        near = best > bound if size == 1.2 else abs(best - bound) <= 0.005
        report.claim(f"greatest computational saving at size {size:g}: {text}", bound, best, "", near, demanded=False)
    larger, original = runs.saving("SDSCBlue", 2, 0, 1.1), runs.top("SDSCBlue")
    report.claim("SDSCBlue: 2/0 at +10% has a lower BSLD than the original at full speed", "<",
                 f"{larger.bsld:.3f}<{original.bsld:.3f}", "", larger.bsld < original.bsld, demanded=False)


def main(data):
    try:
        runs = Runs(data)
    except duckdb.IOException as error:
        print(f"no results of etinski2010 below {data}: {error}\nRun the manifest etinski2010 first.", file=sys.stderr)
        return 2
    report = Report()
    for part in (anchors, table1, table3, thresholds, savings, enlarged, reported):
        report.attempt(part, runs)
    print("every demanded claim holds" if not report.failed else f"{report.failed} demanded claims fail")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/") if len(sys.argv) > 1 else "results/data"))
