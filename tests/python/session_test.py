"""What a session answers, and what it says when it cannot."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import tracemalloc
import unittest
from pathlib import Path

import numpy as np
import pandas as pd

import sessions
import tensor_trace as tt
from tensor_trace.decoder.session_file import VERSION
from tensor_trace.extension import find_extension


class SessionTest(unittest.TestCase):
    def test_numbers_are_those_of_tt_show(self) -> None:
        path = sessions.session("moe")
        shown = json.loads(sessions.run("show", path, "--json"))
        with tt.open(path) as session:
            self.assertEqual(session.info["id"], shown["id"])
            self.assertEqual(session.info["tokens"], len(session.tokens()))
            self.assertEqual(session.info["steps"], len(session.steps()))
            self.assertTrue(session.is_moe)
            totals = session.steps()
            self.assertEqual(totals.accesses.sum(), len(session.accesses()))
            self.assertIn("moe", session._repr_html_())
            self.assertIn("13 tokens in 6 steps, done", repr(session))

    def test_a_part_at_a_time_is_the_whole(self) -> None:
        with tt.open(sessions.session("moe")) as session:
            parts = list(session.iter_accesses(rows=100))
            self.assertGreater(len(parts), 2)
            whole = session.accesses()
            pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
            some = session.accesses(["step", "size_bytes"], steps=range(2, 4))
            self.assertEqual(some.step.unique().tolist(), [2, 3])
            self.assertEqual(list(some), ["step", "size_bytes"])

    def test_memory_does_not_grow_with_the_session(self) -> None:
        # The same session, read through once and ten times as long.
        def peak(tokens: int) -> int:
            with tt.open(sessions.session("small", tokens=tokens)) as session:
                for _ in session.iter_accesses(["size_bytes"], steps=range(1)):
                    pass  # what is made once per session
                tracemalloc.start()
                rows = sum(len(part) for part in session.iter_accesses(rows=500))
                _, most = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                self.assertGreater(rows, 100 * tokens)
                return most

        self.assertLess(peak(120), 1.5 * peak(12))

    def test_sessions_of_every_architecture_are_valid(self) -> None:
        for shape in ("t5", "rwkv", "moe"):
            path = sessions.session(shape, tokens=6 if shape == "moe" else 3)
            self.assertEqual(tt.TraceAnalyzer(path).validate(), [], shape)

    def test_missing_accesses_are_found(self) -> None:
        def found(change) -> str:
            analyzer = tt.TraceAnalyzer(sessions.session("small"))
            analyzer._df = change(analyzer.df)
            return "; ".join(analyzer.validate())

        self.assertEqual(found(lambda df: df), "")
        self.assertIn("tokens are missing", found(lambda df: df[df.token_id != 3]))
        self.assertIn("no accesses in the layers [1]", found(lambda df: df[df.layer_id != 1]))
        self.assertIn(
            "outside the model file", found(lambda df: df.assign(file_offset=df.file_offset * 9))
        )
        last = sessions.PROMPT_TOKENS + 5 - 1
        self.assertIn(
            "instead of about", found(lambda df: df[(df.token_id == last) | (df.op % 2 == 0)])
        )

    def test_too_many_rows_are_refused(self) -> None:
        with tt.open(sessions.session("moe")) as session:
            with self.assertRaisesRegex(
                tt.SessionError, r"more than 1,000 accesses.*iter_accesses"
            ):
                session.accesses(max_rows=1000)

    def test_mistakes_are_answered_with_what_exists(self) -> None:
        with tt.open(sessions.session("small")) as session:
            with self.assertRaisesRegex(ValueError, "no table 'accesses'.*access, op, step"):
                session.table("accesses")
            with self.assertRaisesRegex(ValueError, "no column 'bytes'.*size_bytes"):
                session.accesses(["bytes"])
            with self.assertRaisesRegex(TypeError, "list of names"):
                session.accesses("size_bytes")
            with self.assertRaisesRegex(ValueError, r"range\(3, 10\)"):
                session.steps(steps=range(0, 10, 2))
            with self.assertRaisesRegex(tt.NoData, "no choices of experts"):
                tt.figures.expert_token(session)
            with self.assertRaisesRegex(ValueError, "'accesses' or 'bytes', not 'time'"):
                tt.figures.heat_map_token_layer(session, "time")

    def test_sql_only_reads(self) -> None:
        path = sessions.session("small")
        before = path.read_bytes()
        for reader in ("decoder", "extension"):
            with tt.open(path, reader=reader) as session:
                self.assertEqual(session.sql("SELECT count(*) AS n FROM step").n[0], 6)
                self.assertEqual(session.sql("SELECT ? + ?", [1, 2]).iloc[0, 0], 3)
                self.assertEqual(session.sql("SELECT :a", {"a": "x"}).iloc[0, 0], "x")
                for statement in (
                    "DELETE FROM token",
                    "DROP TABLE token",
                    "UPDATE tt_meta SET value = ''",
                ):
                    with self.assertRaises(tt.SessionError, msg=f"{reader}: {statement}"):
                        session.sql(statement)
                with self.assertRaisesRegex(
                    tt.SessionError, "no such column: no_column.*docs/sql.md"
                ):
                    session.sql("SELECT no_column FROM step")
        self.assertEqual(path.read_bytes(), before)

    def test_captured_values_are_those_of_tt_values(self) -> None:
        rules = (".*@S0-1", "attention@S1", "lens@S1")
        rules += ("ffn_out@S2@I1", "l_out@S2@K3", "ffn_inp@S2@F16")
        path = sessions.session(
            "small", *(word for rule in rules for word in ("--capture", rule)), tokens=3
        )
        shown = json.loads(sessions.run("values", path, "--json"))["outputs"]
        with tt.open(path) as session:
            found = list(session.values())
            self.assertEqual(
                [(step, op, name) for step, op, name, _ in found],
                [(of["step"], of["op"], of["tensor_name"]) for of in shown],
            )
            self.assertGreater(len(found), 50)
            (of,) = session.values("lens")
            self.assertEqual(of[3].shape[0], 12)  # 2 of the chosen token, 10 likely ones
            (of,) = session.values("attention-0")
            self.assertEqual(of[0], 1)
            self.assertAlmostEqual(float(of[3].sum()), of[3].shape[0], places=4)  # 1 per head
            (of,) = session.values("ffn_out-0.src1")
            self.assertEqual(of[0], 2)
            (of,) = session.values("l_out-0.top")
            self.assertEqual(of[3].shape[-2:], (2, 3))
            (of,) = session.values("ffn_inp-0", range(2, 3))
            np.testing.assert_array_equal(of[3], of[3].astype(np.float16).astype(np.float32))
            (_, _, _, values), *_ = session.values("l_out-0", range(0, 1))
            npy = sessions.folder() / "l_out.npy"
            chosen = ("--op", "l_out-0", "--step", 0)
            sessions.run("values", path, *chosen, "--npy", npy)
            np.testing.assert_array_equal(np.load(npy), values)
            listed = json.loads(sessions.run("values", path, *chosen, "--json"))["outputs"][0]
            self.assertEqual(list(values.shape), [n for n in listed["shape"][::-1] if n != 1])
            np.testing.assert_array_equal(np.float32(listed["values"]), values.reshape(-1))
            # safetensors: the length of the header in 8 bytes, the header, the arrays.
            path_of_all = sessions.folder() / "all.safetensors"
            sessions.run("values", path, "--safetensors", path_of_all)
            written = path_of_all.read_bytes()
            data = 8 + int.from_bytes(written[:8], "little")
            header = json.loads(written[8:data])
            self.assertEqual(len(header), len(found))
            self.assertEqual(data % 8, 0)
            last = 0
            for step, op, name, values in found:
                of = header[f"step{step}.op{op}.{name}"]
                self.assertEqual((of["dtype"], of["shape"]), ("F32", list(values.shape)))
                begin, end = of["data_offsets"]
                self.assertEqual(begin, last)
                array = np.frombuffer(written[data + begin : data + end], "<f4")
                np.testing.assert_array_equal(array.reshape(values.shape), values)
                last = end
            self.assertEqual(data + last, len(written))
        with tt.open(sessions.session("small")) as session:
            self.assertEqual(list(session.values()), [])

    def test_a_level_without_accesses_says_so(self) -> None:
        with tt.open(sessions.session("small", "--level", "minimal", tokens=3)) as session:
            self.assertEqual(len(session.accesses()), 0)
            self.assertEqual(list(session.accesses()), list(session.accesses().columns))
            with self.assertRaisesRegex(tt.NoData, "level minimal. Record with --level detailed"):
                tt.TraceAnalyzer(session).df
            self.assertEqual(len(session.weights()), 0)
            self.assertIn("7 tokens in 1 steps", session._repr_html_())
            self.assertEqual(len(session.faults()) + len(session.residency()), 0)
            for name in set(tt.figures.ALL) - {"expert_token", "attention_heads"}:
                with self.subTest(figure=name):
                    with self.assertRaisesRegex(tt.NoData, "level minimal"):
                        tt.figures.ALL[name](session)

    def test_the_extension_is_found(self) -> None:
        self.assertEqual(find_extension(), sessions.EXTENSION)
        path = sessions.session("small")
        with tt.open(path) as session:
            self.assertIsNotNone(session._extension)
        os.environ["TENSOR_TRACE_EXTENSION"] = "/nonexistent/tensor_trace.so"
        try:
            with tt.open(path) as session:  # reads it nevertheless
                self.assertEqual(session.sql("SELECT count(*) FROM token").iloc[0, 0], 13)
            with self.assertRaisesRegex(tt.SessionError, "cannot be loaded"):
                tt.open(path, reader="extension")
        finally:
            os.environ["TENSOR_TRACE_EXTENSION"] = str(sessions.EXTENSION)


class FileTest(unittest.TestCase):
    def copy(self, name: str) -> Path:
        path = sessions.folder() / name
        shutil.copy(sessions.session("small"), path)
        return path

    def test_missing(self) -> None:
        with self.assertRaisesRegex(tt.MissingSession, "There is no file /no/such.ttrace"):
            tt.open("/no/such.ttrace")
        with self.assertRaises(FileNotFoundError):
            tt.open("/no/such.ttrace")

    def test_a_folder_and_other_files(self) -> None:
        with self.assertRaisesRegex(tt.SessionError, "cannot be read: Is a directory"):
            tt.open(sessions.folder())
        text = sessions.folder() / "text.ttrace"
        text.write_text("no session")
        with self.assertRaisesRegex(tt.DamagedSession, "not an SQLite file"):
            tt.open(text)
        other = sessions.folder() / "other.ttrace"
        with sqlite3.connect(other) as db:
            db.execute("CREATE TABLE t (a)")
        db.close()
        with self.assertRaisesRegex(tt.DamagedSession, "SQLite file of another program"):
            tt.open(other)

    def test_pipes_are_refused(self) -> None:
        pipe = sessions.folder() / "pipe.ttrace"
        os.mkfifo(pipe)
        with self.assertRaisesRegex(tt.SessionError, "cannot be read: it is not a regular file"):
            tt.open(pipe)
        for suffix in ("-journal", "-wal", "-shm"):
            path = self.copy("beside.ttrace")
            beside = Path(f"{path}{suffix}")
            os.mkfifo(beside)
            with self.assertRaisesRegex(tt.SessionError, f"{suffix} cannot be read: it is not a"):
                tt.open(path)
            beside.unlink()

    def test_a_change_that_was_interrupted_is_undone(self) -> None:
        # As a power loss leaves it: the journal is on the disk, and so is a part of the change.
        path, cut = self.copy("changing.ttrace"), sessions.folder() / "cut.ttrace"
        db = sqlite3.connect(path, isolation_level=None)
        for statement in ("PRAGMA synchronous=FULL", "PRAGMA cache_size=1", "PRAGMA cache_spill=1"):
            db.execute(statement)
        db.execute("BEGIN")
        db.execute("UPDATE tt_step SET packed = zeroblob(length(packed))")
        db.execute("UPDATE tt_token SET text = 'wrong'")
        shutil.copy(path, cut)
        shutil.copy(f"{path}-journal", f"{cut}-journal")
        db.execute("ROLLBACK")
        db.close()
        self.assertNotEqual(cut.read_bytes(), path.read_bytes())
        for reader in ("decoder", "extension"):
            half = sessions.folder() / f"half-{reader}.ttrace"
            shutil.copy(cut, half)
            shutil.copy(f"{cut}-journal", f"{half}-journal")
            with tt.open(half, reader=reader) as undone, tt.open(path) as whole:
                self.assertEqual(len(undone.accesses()), len(whole.accesses()))
                self.assertEqual(list(undone.tokens().text), list(whole.tokens().text))

    def test_a_name_with_special_characters(self) -> None:
        with tt.open(self.copy("a b?c#d%20é.ttrace")) as session:
            self.assertEqual(len(session.tokens()), 13)

    def test_newer_version(self) -> None:
        path = self.copy("newer.ttrace")
        with path.open("r+b") as file:
            file.seek(60)
            file.write((VERSION + 1).to_bytes(4, "big"))
        message = f"format version {VERSION + 1}.*reads up to {VERSION}"
        with self.assertRaisesRegex(tt.NewerVersion, message):
            tt.open(path, reader="decoder")

    def test_foreign_tables_are_not_evaluated(self) -> None:
        for statement in (
            "CREATE VIEW tt_more AS SELECT 1",
            "CREATE TABLE tt_more (a, b GENERATED ALWAYS AS (a + 1))",
            "CREATE TRIGGER tt_more AFTER INSERT ON tt_token BEGIN SELECT 1; END",
        ):
            path = self.copy("foreign.ttrace")
            with sqlite3.connect(path) as db:
                db.execute(statement)
            db.close()
            with self.assertRaisesRegex(tt.DamagedSession, 'does not have the tables.*"tt_more"'):
                tt.open(path)

    def test_every_damaged_row_is_found(self) -> None:
        reads = {
            "tt_meta": lambda session: session.info,
            "tt_fact": lambda session: session.facts,
            "tt_model_file": lambda session: session.table("model"),
            "tt_template": lambda session: session.tensors(),
            "tt_allocation": lambda session: session.accesses(["tensor_ptr"]),
            "tt_step": lambda session: session.steps(),
            "tt_token": lambda session: session.tokens(),
            "tt_loss": lambda session: session.info,
        }
        for table, read in reads.items():
            path = self.copy("damaged.ttrace")
            with sqlite3.connect(path) as db:
                db.execute(f"UPDATE {table} SET crc = crc + 1")
            db.close()
            with self.subTest(table=table):
                with self.assertRaisesRegex(
                    tt.DamagedSession, f"{table} has a wrong checksum.*tt parse"
                ):
                    with tt.open(path, reader="decoder") as session:
                        read(session)

    def test_any_damaged_byte_is_an_error_or_harmless(self) -> None:
        """Never another exception, never other numbers."""
        content = sessions.session("small").read_bytes()
        with tt.open(sessions.session("small"), reader="decoder") as session:
            right = session.accesses(["size_bytes", "timestamp_ns"]).sum().to_dict()
        path, errors = sessions.folder() / "flipped.ttrace", 0
        for at in range(100, len(content), 4 * 977):
            path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
            try:
                with tt.open(path, reader="decoder") as session:
                    self.assertEqual(
                        session.accesses(["size_bytes", "timestamp_ns"]).sum().to_dict(), right
                    )
            except tt.SessionError:
                errors += 1
        self.assertGreater(errors, 3)

    def test_truncated(self) -> None:
        content = sessions.session("small").read_bytes()
        path = sessions.folder() / "short.ttrace"
        for length in (0, 50, 100, 4096, len(content) // 2):
            path.write_bytes(content[:length])
            with self.assertRaises(tt.DamagedSession, msg=str(length)):
                with tt.open(path, reader="decoder") as session:
                    session.accesses()

    def test_a_damaged_blob_with_a_right_checksum(self) -> None:
        from tensor_trace.decoder.session_file import _checksum

        for blob in (b"", b"\xff" * 20, b"\x05\x80", b"\x00\x01\xff\xff\xff\x0f"):
            path = self.copy("blob.ttrace")
            with sqlite3.connect(path) as db:
                db.text_factory = bytes
                cursor = db.execute("SELECT * FROM tt_step WHERE id = 3")
                names = [column[0] for column in cursor.description]
                row = dict(zip(names, cursor.fetchone()), packed=blob)
                crc = _checksum(tuple(row.values())[:-1])
                db.execute("UPDATE tt_step SET packed = ?, crc = ? WHERE id = 3", (blob, crc))
            db.close()
            with self.assertRaisesRegex(tt.DamagedSession, "is damaged: step 3: "):
                with tt.open(path, reader="decoder") as session:
                    session.accesses()

    def test_a_recording_in_progress(self) -> None:
        path = sessions.folder() / "running.ttrace"
        command = [
            sessions.TT,
            "record",
            "-q",
            "-m",
            sessions.model("small"),
            "--tokens",
            sessions.PROMPT,
        ]
        command += ["-n", "100000", "-c", "200000", "-t", "1", "--ignore-eos", "-o", path]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            found = self.running_file(recorder)
            with self.assertRaisesRegex(
                tt.RunningSession, f"being recorded by process {recorder.pid}"
            ):
                tt.open(found)
            with tt.open(found, running=True) as session:
                self.assertEqual(session.info["state"], "running")
                self.assertGreater(len(session.steps()), 0)
                self.assertGreater(len(session.accesses(steps=range(1))), 0)
        finally:
            recorder.send_signal(signal.SIGKILL)
            recorder.wait()
        with self.assertRaisesRegex(tt.RunningSession, "was interrupted. `tt show .*recovers it"):
            tt.open(found)
        sessions.run("show", found)
        with tt.open(found) as session:
            self.assertEqual(session.info["state"], "recovered")

    def running_file(self, recorder: subprocess.Popen) -> Path:
        """The file of a session, once it has a step."""
        known = {sessions.session("small")}
        for _ in range(1200):
            self.assertIsNone(recorder.poll(), "the recorder ended")
            for path in sessions.folder().glob("*.ttrace"):
                try:
                    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
                        state = db.execute(
                            "SELECT value FROM tt_meta WHERE key = 'state'"
                        ).fetchone()
                        steps = db.execute("SELECT count(*) FROM tt_step").fetchone()[0]
                    db.close()
                except sqlite3.Error:
                    continue
                if path not in known and state == ("running",) and steps > 1:
                    return path
            time.sleep(0.05)
        self.fail("no session appeared")


class RecordTest(unittest.TestCase):
    def test_records_and_opens(self) -> None:
        output = sessions.folder() / "recorded.ttrace"
        given = {"program": sessions.TT, "tokens": [1, 290, 300], "n_predict": 3, "temperature": 0}
        with tt.record(
            sessions.model("small"), output=output, **given, options=["-t", "1"]
        ) as session:
            self.assertEqual(session.path, output)
            self.assertEqual(session.tokens().vocabulary_id.head(3).tolist(), [1, 290, 300])
        with self.assertRaisesRegex(tt.SessionError, "recorded.ttrace already exists"):
            tt.record(sessions.model("small"), output=output, **given)
        tt.record(
            sessions.model("small"),
            "-a prompt",
            output,
            n_predict=1,
            force=True,
            program=sessions.TT,
        ).close()

    def test_mistakes(self) -> None:
        with self.assertRaisesRegex(
            tt.SessionError, "The program 'no-such-tt' was not found. Install"
        ):
            tt.record("m.gguf", "hello", program="no-such-tt")
        with self.assertRaisesRegex(tt.SessionError, "no-such.gguf"):
            tt.record("no-such.gguf", "hello", sessions.folder() / "x.ttrace", program=sessions.TT)
        with self.assertRaisesRegex(ValueError, "either a prompt or tokens"):
            tt.record("m.gguf", program=sessions.TT)


if __name__ == "__main__":
    sessions.main()
