"""SQL without the extension: the tables that a statement reads are computed into a temporary
database, which SQLite keeps on disk if it is large."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

import pandas as pd

from ..schema import TABLES
from .tables import Decoder

# The sums and views of docs/sql.md.
_TOTALS = """
CREATE VIEW access_total AS SELECT phase, template, access, op, operation_type, device, tensor_name,
  tensor_type, tensor_kind, component, role, memory_source, op_layer_id, tensor, layer_id, expert_id,
  write, count(*) AS accesses, sum(size_bytes) AS size_bytes
  FROM access GROUP BY template, access, phase, expert_id;
CREATE VIEW op_total AS SELECT phase, operation_type, device, tensor_name, component, template, op,
  op_layer_id, count(*) AS executions, sum(duration_ns) AS duration_ns, sum(bytes_read) AS bytes_read,
  sum(bytes_written) AS bytes_written FROM op GROUP BY template, op, phase;
CREATE VIEW access_by_tensor AS SELECT tensor_name, tensor_kind, memory_source, layer_id, component,
  role, sum(accesses) AS accesses, sum(size_bytes) AS size_bytes,
  sum(size_bytes) FILTER (WHERE phase = 'prompt') AS prompt_bytes,
  sum(size_bytes) FILTER (WHERE phase = 'generate') AS generate_bytes
  FROM access_total GROUP BY tensor_name, tensor_kind, memory_source, layer_id, component, role;
CREATE VIEW access_by_layer AS SELECT layer_id, sum(accesses) AS accesses,
  sum(size_bytes) AS size_bytes, sum(size_bytes) FILTER (WHERE NOT write) AS bytes_read,
  sum(size_bytes) FILTER (WHERE write) AS bytes_written,
  sum(size_bytes) FILTER (WHERE memory_source = 'disk') AS disk_bytes
  FROM access_total GROUP BY layer_id;
CREATE VIEW access_by_op AS SELECT operation_type, sum(accesses) AS accesses,
  sum(size_bytes) AS size_bytes, sum(size_bytes) FILTER (WHERE NOT write) AS bytes_read,
  sum(size_bytes) FILTER (WHERE write) AS bytes_written FROM access_total GROUP BY operation_type;
CREATE VIEW access_by_expert AS SELECT layer_id, expert_id, sum(accesses) AS accesses,
  sum(size_bytes) AS size_bytes FROM access_total WHERE expert_id IS NOT NULL
  GROUP BY layer_id, expert_id;
CREATE VIEW access_by_source AS SELECT phase,
  CASE memory_source WHEN 'disk' THEN 'DISK' ELSE 'BUFFER' END AS memory, memory_source,
  sum(accesses) AS accesses, sum(size_bytes) AS size_bytes
  FROM access_total GROUP BY phase, memory_source;
CREATE VIEW hottest_tensors AS SELECT * FROM access_by_tensor ORDER BY size_bytes DESC, tensor_name;
CREATE VIEW op_time AS SELECT operation_type, sum(executions) AS executions,
  sum(duration_ns) AS duration_ns, sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written,
  1e9 * (sum(bytes_read) + sum(bytes_written)) / nullif(sum(duration_ns), 0) AS bytes_per_s
  FROM op_total GROUP BY operation_type;
CREATE VIEW expert_use AS SELECT layer_id, expert_id, count(*) AS tokens,
  sum(expert_rank = 0) AS first_choices, avg(routing_score) AS mean_score
  FROM expert GROUP BY layer_id, expert_id;
CREATE VIEW token_latency AS SELECT step, token_id, token_count, phase, duration_ns,
  end_ns - lag(end_ns) OVER (ORDER BY step) AS since_last_ns,
  1e9 * token_count / nullif(end_ns - lag(end_ns, 1, begin_ns) OVER (ORDER BY step), 0)
  AS tokens_per_s, 1e9 * token_count / nullif(duration_ns, 0) AS evaluated_per_s FROM step;
CREATE VIEW phase_totals AS SELECT phase, count(*) AS steps, sum(token_count) AS tokens,
  sum(duration_ns) AS duration_ns, sum(accesses) AS accesses, sum(bytes_read) AS bytes_read,
  sum(bytes_written) AS bytes_written FROM step GROUP BY phase;
"""

_HIDDEN_READS = re.compile(r"\b(USING|NATURAL)\b", re.IGNORECASE)
_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


class TemporaryTables:
    """Answers statements over a decoder. Fills each table once per set of columns."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        for table, columns in TABLES.items():
            types = ", ".join(f'"{name}" {_sql_type(kind)}' for name, kind in columns.items())
            self._db.execute(f'CREATE TABLE "{table}" ({types})')
        self._db.executescript(_TOTALS)
        self._filled: dict[str, set[str]] = {}

    def close(self) -> None:
        self._db.close()

    def query(self, sql: str, values: Sequence[object] | dict[str, object]) -> sqlite3.Cursor:
        """Raises sqlite3.Error if the statement is not a SELECT over the tables."""
        read: dict[str, set[str]] = {}

        def authorize(action: int, table: str | None, column: str | None, *_: object) -> int:
            if action not in _READS:
                return sqlite3.SQLITE_DENY
            if action == sqlite3.SQLITE_READ and table in TABLES:
                read.setdefault(table, set()).add(column or "")
            return sqlite3.SQLITE_OK

        self._db.set_authorizer(authorize)
        try:
            self._db.execute(f"EXPLAIN {sql}", values).fetchall()
            self._db.set_authorizer(None)
            for table, columns in read.items():
                # SQLite does not report the columns that USING and NATURAL compare.
                self._fill(
                    table, set(TABLES[table]) if _HIDDEN_READS.search(sql) else columns - {""}
                )
            self._db.set_authorizer(authorize)
            return self._db.execute(sql, values)
        finally:
            self._db.set_authorizer(None)

    def _fill(self, table: str, columns: set[str]) -> None:
        if table in self._filled and columns <= self._filled[table]:
            return
        columns |= self._filled.get(table, set())
        names = [name for name in TABLES[table] if name in columns] or [next(iter(TABLES[table]))]
        listed = ", ".join(f'"{name}"' for name in names)
        insert = f'INSERT INTO "{table}" ({listed}) VALUES ({", ".join("?" * len(names))})'
        self._db.execute("BEGIN")
        self._db.execute(f'DELETE FROM "{table}"')
        for frame in self._decoder.frames(table, names):
            rows = zip(*(_sql_values(frame[name], TABLES[table][name]) for name in names))
            self._db.executemany(insert, rows)
        self._db.execute("COMMIT")
        self._filled[table] = columns


def _sql_type(kind: str) -> str:
    if kind in ("category", "object"):
        return "TEXT"
    return "REAL" if kind == "float32" else "INTEGER"


def _sql_values(column: pd.Series, kind: str) -> list[object]:
    if _sql_type(kind) == "INTEGER":
        column = column.astype("Int64")
    values = column.astype(object)
    return values.where(column.notna(), None).tolist()
