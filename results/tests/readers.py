#!/usr/bin/env python3
"""Reads a small dataset with DuckDB, Polars, pandas and DataFusion and checks types, rows, nulls, lists and instants.

    readers.py DATA SCHEMA

DATA/sample/{tasks,jobs,series,accounts,failures}/*.parquet is written by the Rust test `readers`; SCHEMA is tests/it/schema.txt.
Each tool reads the folder in its own usual way. Exit code 0: every tool reads the written rows.
"""
import datetime
import math
import sys

ROWS = {"tasks": 60, "jobs": 7, "series": 4, "accounts": 3, "failures": 1}
PROBE = ["task_index", "worker", "started_us", "gear_jobs_count", "gears_ghz", "wq_threshold", "slowdown_mean",
         "extra_procs", "log"]


def expected_rows():
    """The values of the probed columns in tests/it/sample.rs; `slowdown_mean` only as null or not."""
    for i in range(ROWS["tasks"]):
        even = i % 2 == 0
        threshold = None if not even else math.inf if i % 4 == 0 else 4.0
        yield [i, f"node{i % 8}", 1_700_000_000_000_000 + 1_500_000 * i, [i, 0, 1, 2, 3, 4000 - i],
               [0.8, 1.1, 1.4, 1.7, 2.0, 2.3], threshold, even, True, "CTC-SP2-1996-3.1-cln" if even else None]


def micros(instant):
    """Microseconds since 1970 of an aware datetime."""
    return (instant - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // datetime.timedelta(microseconds=1)


def arrow_name(dtype):
    """The name of a pyarrow type in the schema file."""
    import pyarrow as pa
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return f"list<{arrow_name(dtype.value_type)}>"
    if dtype in (pa.string(), pa.large_string(), pa.string_view()):
        return "string"
    if dtype == pa.timestamp("us", tz="UTC"):
        return "timestamp(us, UTC)"
    return {pa.int64(): "int64", pa.float64(): "double", pa.bool_(): "bool"}.get(dtype, str(dtype))


def with_duckdb(folder):
    import duckdb
    names = {"BIGINT": "int64", "DOUBLE": "double", "VARCHAR": "string", "BOOLEAN": "bool", "BIGINT[]": "list<int64>",
             "DOUBLE[]": "list<double>", "TIMESTAMP WITH TIME ZONE": "timestamp(us, UTC)"}
    table = f"read_parquet('{folder}/*.parquet')"
    types = {row[0]: names.get(row[1], row[1]) for row in duckdb.sql(f"describe select * from {table}").fetchall()}
    count = duckdb.sql(f"select count(*) from {table}").fetchall()[0][0]
    probe = ", ".join("epoch_us(started_at)" if c == "started_us" else f'"{c}"' for c in PROBE)
    rows = lambda: duckdb.sql(f"select {probe} from {table} order by task_index").fetchall()
    return types, count, rows


def with_polars(folder):
    import polars as pl
    names = {pl.Int64: "int64", pl.Float64: "double", pl.String: "string", pl.Boolean: "bool",
             pl.List(pl.Int64): "list<int64>", pl.List(pl.Float64): "list<double>",
             pl.Datetime("us", "UTC"): "timestamp(us, UTC)"}
    frame = pl.scan_parquet(folder)
    types = {name: names.get(dtype, str(dtype)) for name, dtype in frame.collect_schema().items()}
    count = frame.select(pl.len()).collect().item()
    probe = [pl.col("started_at").dt.epoch("us").alias(c) if c == "started_us" else pl.col(c) for c in PROBE]
    rows = lambda: frame.sort("task_index").select(probe).collect().rows()
    return types, count, rows


def with_pandas(folder):
    import pandas as pd
    frame = pd.read_parquet(folder, dtype_backend="pyarrow")
    types = {name: arrow_name(dtype.pyarrow_dtype) for name, dtype in frame.dtypes.items()}

    def rows():
        import pyarrow as pa
        table = pa.Table.from_pandas(frame.sort_values("task_index"), preserve_index=False)
        return probe_arrow(table)
    return types, len(frame), rows


def with_datafusion(folder):
    import pyarrow as pa
    from datafusion import SessionContext
    context = SessionContext()
    context.sql(f"create external table t stored as parquet location '{folder}/'").collect()
    frame = context.sql("select * from t")
    types = {field.name: arrow_name(field.type) for field in frame.schema()}
    count = frame.count()
    rows = lambda: probe_arrow(pa.Table.from_batches(context.sql("select * from t order by task_index").collect()))
    return types, count, rows


def probe_arrow(table):
    """The probed columns of a pyarrow table as Python rows."""
    columns = [[micros(v) for v in table["started_at"].to_pylist()] if c == "started_us" else table[c].to_pylist()
               for c in PROBE]
    return list(zip(*columns))


def check(tool, read, data, schema):
    """All differences between the written rows and the rows that the tool reads."""
    for table, count in ROWS.items():
        types, found, rows = read(f"{data}/sample/{table}")
        if found != count:
            yield f"{tool}: {table} has {found} rows, not {count}"
        for name, expected in schema[table].items():
            if types.get(name) != expected:
                yield f"{tool}: {table}.{name} is {types.get(name)}, not {expected}"
        for name in types.keys() - schema[table].keys():
            yield f"{tool}: {table}.{name} is not in the schema"
        if table != "tasks":
            continue
        for row, expected in zip(rows(), expected_rows(), strict=True):
            row = list(row)
            at = PROBE.index("slowdown_mean")
            row[at] = row[at] is not None
            for name, value, wanted in zip(PROBE, row, expected):
                if (list(value) if isinstance(wanted, list) else value) != wanted:
                    yield f"{tool}: {table}.{name} of task {expected[0]} is {value!r}, not {wanted!r}"


def main(data, schema_file):
    schema = {table: {} for table in ROWS}
    with open(schema_file, encoding="utf-8") as lines:
        for line in lines:
            column, kind = line.rstrip("\n").split(" ", 1)
            table, name = column.split(".")
            schema[table][name] = kind.removesuffix(" null")
    wrong = []
    for tool, read in [("DuckDB", with_duckdb), ("Polars", with_polars), ("pandas", with_pandas),
                       ("DataFusion", with_datafusion)]:
        found = list(check(tool, read, data, schema))
        print(f"{tool}: {'as written' if not found else f'{len(found)} differences'}")
        wrong += found
    for line in wrong[:40]:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
