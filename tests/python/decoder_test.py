"""The decoder of the package and the SQLite extension give the same values: every column of every
row of every table, for every kind of session."""

import sys
import unittest
from unittest import mock

import numpy as np
import pandas as pd

import sessions
from sessions import PROMPT_TOKENS
from tensor_trace import DamagedSession, Session
from tensor_trace.decoder.blob import unpacked
from tensor_trace.decoder.sql import TemporaryTables
from tensor_trace.decoder.tables import Decoder
from tensor_trace.extension import Extension
from tensor_trace.schema import TABLES
from tensor_trace.frames import concatenated


def values(column: pd.Series) -> list:
    found = column.to_numpy(object, copy=True)
    found[column.isna().to_numpy()] = None
    return found.tolist()


def differences(got: pd.DataFrame, wanted: pd.DataFrame) -> list[str]:
    if len(got) != len(wanted):
        return [f"{len(got)} rows instead of {len(wanted)}"]
    found = []
    for name in got.columns:
        pair = values(got[name]), values(wanted[name])
        if pair[0] == pair[1]:
            continue
        for row, (a, b) in enumerate(zip(*pair)):
            both = isinstance(a, float) and isinstance(b, float)
            if a != b and not (both and np.isclose(a, b, rtol=1e-6, atol=0)):
                found.append(f"{name} of row {row}: {a!r} instead of {b!r}")
                break
    return found


class DecoderTest(unittest.TestCase):
    def test_equals_the_extension(self) -> None:
        rows = dict.fromkeys(TABLES, 0)
        paths = sessions.all_kinds()
        self.assertGreaterEqual(len(paths), 20)
        for kind, path in paths.items():
            decoder, extension = Decoder(path), Extension(path, sessions.EXTENSION)
            for table in TABLES:
                with self.subTest(kind=kind, table=table):
                    got = concatenated(table, None, decoder.frames(table, None))
                    wanted = concatenated(table, None, extension.frames(table, None))
                    self.assertEqual(differences(got, wanted), [])
                    self.assertEqual(
                        got.dtypes.astype(str).to_dict(), wanted.dtypes.astype(str).to_dict()
                    )
                    rows[table] += len(got)
            decoder.close()
            extension.close()
        self.assertEqual([table for table, count in rows.items() if count == 0], [])

    def test_the_columns_are_those_of_sql(self) -> None:
        extension = Extension(sessions.session("small"), sessions.EXTENSION)
        for table, columns in TABLES.items():
            described = extension.query(f'SELECT * FROM "{table}" LIMIT 0', ()).description
            self.assertEqual({column[0] for column in described}, set(columns), table)
        views = "SELECT name FROM {} WHERE type = 'view'"
        known = set(extension.query(views.format("sqlite_temp_schema"), ()).fetchall())
        tables = TemporaryTables(Decoder(sessions.session("small")))
        ours = set(tables._db.execute(views.format("sqlite_schema")).fetchall())
        self.assertEqual(ours, known | {("access_total",), ("op_total",)})
        extension.close()

    def test_each_zstd_library_unpacks_the_same(self) -> None:
        path = sessions.session("moe")
        wanted = Decoder(path).templates.keys()
        with mock.patch.dict(sys.modules, {"compression": None, "zstandard": None}):
            decoder = Decoder(path)
            self.assertEqual(decoder.templates.keys(), wanted)
            self.assertGreater(len(decoder.addresses(1)), 10)
            with self.assertRaisesRegex(DamagedSession, "invalid zstd frame"):
                unpacked(b"\x28\xb5\x2f\xfd\x20\x05" + b"broken")

    def test_a_part_of_the_steps_is_the_same_part(self) -> None:
        path = sessions.session("moe")
        decoder, extension = Decoder(path), Extension(path, sessions.EXTENSION)
        for table in ("access", "op", "step", "expert"):
            columns = ["step", "phase"]
            parts = [list(of.frames(table, columns, 2, 4)) for of in (decoder, extension)]
            got, wanted = (concatenated(table, columns, part) for part in parts)
            self.assertEqual(differences(got, wanted), [])
            self.assertEqual(sorted(got.step.unique()), [2, 3])

    def test_rows_per_token_are_those_of_tt_export(self) -> None:
        # The export has whole bytes per token, other codes of roles, and experts in the name.
        other = {"duration_ns", "self_ns", "size_bytes", "tensor_name", "qkv_type"}
        columns = [name for name in TABLES["access"] if name not in other]
        for shape in ("small", "moe", "t5"):
            path = sessions.session(shape, tokens=6 if shape != "t5" else 3)
            with self.subTest(shape=shape):
                parquet = sessions.folder() / "rows.parquet"
                sessions.run("export", path, "-q", "--force", "-o", parquet, "--per-token")
                decoder, wanted = Decoder(path), pd.read_parquet(parquet)
                got = concatenated("access", None, decoder.accesses(None, per_token=True))
                self.assertEqual(differences(got[columns], wanted), [])
                shares = got.size_bytes / got.token_count
                self.assertAlmostEqual(shares.sum(), wanted.size_bytes.sum(), 3)
                self.assertLess((shares - wanted.size_bytes).abs().max(), PROMPT_TOKENS)
                decoder.close()

    def test_rows_per_head_have_the_same_bytes(self) -> None:
        for shape in ("small", "moe", "t5", "deepseek-like"):
            path = sessions.session(shape, tokens=6 if shape in ("small", "moe") else 3)
            decoder = Decoder(path)
            plain = concatenated("access", None, decoder.accesses(None))
            heads = concatenated("access", None, decoder.accesses(None, per_head=True))
            key = ["step", "access"]
            for name in ("size_bytes", "self_ns"):
                sums = [of.groupby(key)[name].sum() for of in (plain, heads)]
                pd.testing.assert_series_equal(*sums)
            split = heads[heads.attention_head.notna()]
            counts = split.groupby(key).attention_heads.agg(["size", "max"])
            self.assertTrue((counts["size"] == counts["max"]).all())
            self.assertGreater(len(split), 0)
            end = split.file_offset + split.file_bytes
            room = split.tensor_file_offset + split.tensor_bytes
            self.assertTrue((end <= room).all())
            decoder.close()

    def test_sql_gives_the_same_with_and_without_the_extension(self) -> None:
        statements = (
            "SELECT * FROM hottest_tensors LIMIT 5",
            "SELECT layer_id, accesses, bytes_read, disk_bytes FROM access_by_layer ORDER BY 1",
            "SELECT * FROM access_by_op ORDER BY operation_type",
            "SELECT * FROM access_by_expert ORDER BY layer_id, expert_id",
            "SELECT * FROM access_by_source ORDER BY phase, memory_source",
            "SELECT * FROM op_time ORDER BY operation_type",
            "SELECT * FROM expert_use ORDER BY layer_id, expert_id",
            "SELECT * FROM token_latency ORDER BY step",
            "SELECT * FROM phase_totals ORDER BY phase",
            "SELECT count(*) FROM access WHERE file_offset IS NULL",
            "SELECT a.step, sum(a.duration_ns), t.text FROM op AS a JOIN token AS t USING (token_id) "
            "GROUP BY a.step ORDER BY a.step",
            "SELECT typeof(duration_ns), typeof(routing_score), typeof(write), typeof(tensor_ptr) "
            "FROM access WHERE expert_id IS NOT NULL LIMIT 1",
            "SELECT sum(executions), sum(bytes_read) FROM op_total",
        )
        for shape in ("small", "moe"):
            path = sessions.session(shape)
            with Session(path, reader="decoder") as decoded, Session(
                path, reader="extension"
            ) as loaded:
                for statement in statements:
                    with self.subTest(shape=shape, statement=statement):
                        got, wanted = decoded.sql(statement), loaded.sql(statement)
                        self.assertEqual(list(got), list(wanted))
                        self.assertEqual(differences(got, wanted), [])

    def test_both_readers_make_the_same_session(self) -> None:
        path = sessions.session("moe")
        with Session(path, reader="decoder") as decoded, Session(
            path, reader="extension"
        ) as loaded:
            self.assertEqual((decoded.reader, loaded.reader), ("decoder", "extension"))
            self.assertEqual(decoded.info, loaded.info)
            self.assertEqual(decoded.facts, loaded.facts)
            self.assertEqual(decoded._repr_html_(), loaded._repr_html_())
            self.assertEqual(differences(decoded.weights(), loaded.weights()), [])
            got, wanted = decoded.accesses(), loaded.accesses()
            self.assertEqual(differences(got, wanted), [])


if __name__ == "__main__":
    sessions.main()
