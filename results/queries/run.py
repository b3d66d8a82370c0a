#!/usr/bin/env python3
"""Runs a query of this folder with DuckDB and prints the rows.

    pip install duckdb
    python results/queries/run.py etinski2010_table1.sql [--data DATA]

DATA is the folder given to powersweep as --data; results/data unless given.
"""
import argparse
import pathlib
import signal
import sys

import duckdb

HERE = pathlib.Path(__file__).resolve().parent


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("query", help="a .sql file, or its name in this folder")
    parser.add_argument("--data", default="results/data", help="data root (default: results/data)")
    options = parser.parse_args()
    path = next((p for p in (pathlib.Path(options.query), HERE / options.query) if p.is_file()), None)
    if path is None:
        known = ", ".join(sorted(p.name for p in HERE.glob("*.sql")))
        sys.exit(f"no query {options.query}; there are {known}")
    sql = path.read_text(encoding="utf-8").replace("results/data/", options.data.rstrip("/") + "/")
    try:
        relation = duckdb.sql(sql)
        relation.show(max_rows=1000, max_width=200)
    except duckdb.IOException as error:
        sys.exit(f"{error}\nIs {options.data} the data root, and has the experiment run?")


if __name__ == "__main__":
    main()
