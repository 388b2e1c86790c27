"""The rows of a session file, with every checksum verified (docs/trace-format.md, "Tables")."""

from __future__ import annotations

import math
import os
import re
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedSession, MissingSession, NewerVersion, RunningSession, SessionError
from .blob import BlobReader, unpacked
from .graph import Template, read_template

APPLICATION_ID = 0x54545243  # TTRC
VERSION = 8
MAX_STEP_VALUES = 16 << 20
MAX_STEP_FAULTS = 1 << 20
MAX_CAPTURED_VALUES = 16 << 20
MAX_CAPTURED_OUTPUTS = 1 << 16

# The columns of tt_step that may be NULL.
CONDITIONS = (
    "interval_ns", "cpu_ns", "cpu_wait_ns", "voluntary_switches", "involuntary_switches",
    "minor_faults", "major_faults", "disk_read_bytes", "throttled_ns", "pressure_cpu_ns",
    "pressure_io_ns", "pressure_memory_ns", "frequency_khz", "thermal_throttles",
    "memory_limit_bytes", "locked_bytes", "resident_bytes", "queue_ns", "sample_ns",
    "detokenize_ns", "build_ns", "evaluate_ns", "graphs_built",
)  # fmt: skip

# Parts of a table's definition that SQLite evaluates when it reads a row.
_EVALUATED = re.compile(r"\b(CHECK|AS)\s*\(", re.IGNORECASE)

# Messages of SQLite contain names of a damaged file, which need not be UTF-8.
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)

Integers = NDArray[np.int64]


@dataclass(slots=True)
class Stats:
    """Level verbose: the values of the output of an op."""

    op: int
    min: float
    max: float
    mean: float
    std: float
    nan: int
    inf: int


@dataclass(slots=True)
class Step:
    id: int
    phase: str
    timing: str
    template: int  # 0: not recorded
    allocation: int  # 0: not recorded
    begin_ns: int
    end_ns: int
    first_op_ns: int
    first_token: int
    n_tokens: int
    threads: int
    dropped: bool
    aborted: bool
    conditions: dict[str, int | None]
    ops_timed: int = 0
    slots: list[tuple[Integers, NDArray[np.float32]]] = field(default_factory=list)
    stats: list[Stats] = field(default_factory=list)
    _times: bytes | None = b""  # until the end times are asked for
    _op_ends: Integers = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def op_ends(self) -> Integers:
        """The end of each op that has a time, ns. Many queries do not need them."""
        if self._times is not None:
            differences = BlobReader(self._times).varints(self.ops_timed).astype(np.int64)
            self._op_ends, self._times = np.cumsum(differences) + self.first_op_ns, None
        return self._op_ends

    def ops_run(self, ops: int) -> int:
        """How many of the template's ops ran. A step without times ran completely."""
        return ops if not self.ops_timed and not self.aborted else min(self.ops_timed, ops)

    def op_begins(self, ops: int) -> Integers:
        """When each of the first `ops` ops began; without a time: when the step began."""
        begins = np.full(ops, self.begin_ns, np.int64)
        timed = min(ops, self.ops_timed)
        if timed:
            begins[0] = self.first_op_ns
            begins[1:timed] = self.op_ends[: timed - 1]
        return begins

    def op_durations(self, ops: int) -> NDArray[np.float64]:
        """NaN: not recorded."""
        durations = np.full(ops, np.nan)
        timed = min(ops, self.ops_timed)
        durations[:timed] = self.op_ends[:timed] - self.op_begins(timed)
        return durations

    def values_of(self, slot: int) -> Integers | None:
        """The list of a slot; None: not recorded."""
        if slot >= len(self.slots) or not len(self.slots[slot][0]):
            return None
        return self.slots[slot][0]


@dataclass(slots=True)
class StepFaults:
    step: int
    kind: str
    count: int
    at_ns: Integers
    addresses: NDArray[np.uint64]


@dataclass(slots=True)
class Residency:
    """What was in memory just before a step: ranges (file, offset, length)."""

    step: int
    at_ns: int
    ranges: list[tuple[int, int, int]]


@dataclass(slots=True)
class StepValues:
    """Captured outputs: op, what is captured of it ("": its output, "attention", "lens", "src0": its
    first source; "top", "src0.top": the largest values of each row) and values, in the shape of numpy
    (the innermost dimension last)."""

    step: int
    not_captured: int
    outputs: list[tuple[int, str, NDArray[np.float32]]]


def connect(path: Path) -> sqlite3.Connection:
    """Opens a session file for reading. The tables of a file are checked first: SQLite would
    evaluate what a foreign schema contains."""
    check_header(path)
    _roll_back(path)
    db = _open(path, "ro")
    try:
        db.text_factory = _text
        db.execute("PRAGMA trusted_schema = OFF")
        for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_schema"):
            ours = kind == "table" and name.startswith("tt_") or kind == "index" and sql is None
            if not ours or _EVALUATED.search(sql or ""):
                raise DamagedSession(
                    f'{path} does not have the tables of a session ({kind} "{name}").'
                )
    except SQLITE_ERRORS as error:
        db.close()
        raise damage(path, error) from error
    except SessionError:
        db.close()
        raise
    return db


def _open(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(os.path.abspath(path))}?mode={mode}"
    return sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)


def _roll_back(path: Path) -> None:
    """Undoes a change of the file that was interrupted, such as a rename of the session. SQLite
    does it for a connection that may write; a read-only one cannot."""
    for suffix in ("-journal", "-wal", "-shm"):
        beside = Path(f"{path}{suffix}")
        if beside.exists() and not beside.is_file():  # SQLite would wait for the writer of a pipe
            raise SessionError(f"{beside} cannot be read: it is not a regular file.")
    journal = Path(f"{path}-journal")
    if not journal.exists() or journal.stat().st_size == 0:
        return
    db = _open(path, "rw")
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError as error:
        if not journal.exists():
            return
        raise SessionError(
            f"A change of {path} was interrupted and cannot be undone: {error}. Copy the file and "
            "its -journal file into a folder that is writable."
        ) from error
    except SQLITE_ERRORS as error:
        raise damage(path, error) from error
    finally:
        db.close()


def check_header(path: Path) -> None:
    """Whether a file is a session of a known version, from its first 100 bytes."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise SessionError(f"{path} cannot be read: it is not a regular file.")
        with open(path, "rb") as file:
            head = file.read(100)
    except FileNotFoundError as error:
        raise MissingSession(f"There is no file {path}.") from error
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror}.") from error
    if head[:16] != b"SQLite format 3\0" or len(head) < 100:
        raise DamagedSession(f"{path} is not a session: it is not an SQLite file.")
    version, application = struct.unpack(">I4xI", head[60:72])
    if application != APPLICATION_ID:
        raise DamagedSession(f"{path} is not a session: it is an SQLite file of another program.")
    if version > VERSION:
        raise NewerVersion(
            f"{path} has format version {version}. This package reads up to {VERSION}: install a "
            "newer tensor_trace."
        )


def damage(path: Path, what: object) -> SessionError:
    return DamagedSession(f"{path} is damaged: {what}. `tt parse --validate` says what is left.")


class SessionFile:
    """Reads one session file. One thread at a time."""

    def __init__(self, path: Path, *, running: bool = False) -> None:
        self.path = path
        self._db = connect(path)
        self._db.text_factory = bytes
        try:
            self.meta = {_text(key): _text(value) for key, value in self._rows("tt_meta", "key")}
            self.facts = [
                (_text(name), _text(value)) for _, name, value in self._rows("tt_fact", "ordinal")
            ]
            if not running:
                _check_finished(path, self.meta)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    def model_files(self) -> Iterator[tuple[int, str, int, int, str]]:
        """Index, path, size, mtime_ns, hash of the header."""
        for id, path, size, mtime_ns, header_hash in self._rows("tt_model_file", "id"):
            yield id, _text(path), size, mtime_ns, _text(header_hash)

    def templates(self) -> Iterator[Template]:
        for id, fingerprint, *counts, packed in self._rows("tt_template", "id"):
            with self._within(f"template {id}"):
                graph = read_template(id, _text(fingerprint), packed)
                found = [len(of) for of in (graph.tensors, graph.nodes, graph.ops, graph.slots)]
                if found != counts:
                    raise DamagedSession("its counts are not those of its row")
            yield graph

    def addresses(self, allocation: int) -> NDArray[np.uint64]:
        """By tensor of the template; empty: not recorded."""
        for id, _, count, packed in self._rows("tt_allocation", "id", allocation, allocation + 1):
            with self._within(f"allocation {id}"):
                blob = BlobReader(unpacked(packed))
                addresses = np.cumsum(blob.zigzags(blob.count(1)))
                blob.expect_end()
                if len(addresses) != count:
                    raise DamagedSession("its count is not that of its row")
                return addresses.astype(np.uint64)
        return np.zeros(0, np.uint64)

    def count(self, table: str) -> int:
        try:
            return self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        except SQLITE_ERRORS as error:
            raise damage(self.path, error) from error

    def has(self, table: str) -> bool:
        """Whether the version of the file has the table."""
        found = self._db.execute("SELECT count(*) FROM sqlite_schema WHERE name = ?", (table,))
        return found.fetchone()[0] > 0

    def steps(self, first: int = 0, end: int | None = None) -> Iterator[Step]:
        for row in self._rows("tt_step", "id", first, end, as_dict=True):
            with self._within(f"step {row['id']}"):
                step = Step(
                    id=row["id"],
                    phase=_text(row["phase"]),
                    timing=_text(row["timing"]),
                    template=row["template"],
                    allocation=row["allocation"],
                    begin_ns=row["begin_ns"],
                    end_ns=row["end_ns"],
                    first_op_ns=row["first_op_ns"],
                    first_token=row["first_token"],
                    n_tokens=row["n_tokens"],
                    threads=row["threads"],
                    dropped=bool(row["dropped"]),
                    aborted=bool(row["aborted"]),
                    conditions={name: row.get(name) for name in CONDITIONS},
                )
                _read_blob(BlobReader(row["packed"]), step)
                if step.ops_timed != row["n_ops"]:
                    raise DamagedSession("its number of ops is not that of its row")
            yield step

    def tokens(self) -> Iterator[tuple[int, int, int, int, int, int | None, str | None, bytes]]:
        """Index, id, position, generated, reused, sequence, draft, text."""
        for *known, text in self._rows("tt_token", "idx"):
            sequence, draft = known[5:] or (None, "none")
            yield *known[:5], sequence, None if _text(draft) == "none" else _text(draft), text

    def faults(self, first: int = 0, end: int | None = None) -> Iterator[StepFaults]:
        """By step; of each step first the major ones."""
        found = []
        for order, (table, kind) in enumerate((("tt_fault", "major"), ("tt_minor_fault", "minor"))):
            if not self.has(table):
                continue
            for step, begin_ns, count, packed in self._rows(table, "step", first, end):
                with self._within(f"page faults of step {step}"):
                    at, addresses = _read_faults(BlobReader(packed), begin_ns)
                found.append((step, order, StepFaults(step, kind, count, at, addresses)))
        yield from (faults for _, _, faults in sorted(found, key=lambda of: of[:2]))

    def residency(self, first: int = 0, end: int | None = None) -> Iterator[Residency]:
        if not self.has("tt_residency"):
            return
        for step, at_ns, _, count, packed in self._rows("tt_residency", "step", first, end):
            with self._within(f"residency before step {step}"):
                blob, ranges, at = BlobReader(packed), [], 0
                for _ in range(blob.count(3)):
                    file, offset, length = blob.varint(), at + blob.zigzag(), blob.varint()
                    ranges.append((file, offset, length))
                    at = offset + length
                blob.expect_end()
                if len(ranges) != count:
                    raise DamagedSession("its number of ranges is not that of its row")
            yield Residency(step, at_ns, ranges)

    def values(self, first: int = 0, end: int | None = None) -> Iterator[StepValues]:
        if not self.has("tt_value"):
            return
        for step, count, not_captured, packed in self._rows("tt_value", "step", first, end):
            with self._within(f"captured values of step {step}"):
                outputs = _read_values(packed)
                if len(outputs) != count:
                    raise DamagedSession("its number of outputs is not that of its row")
            yield StepValues(step, not_captured, outputs)

    def losses(self) -> dict[str, int]:
        return {_text(name): count for name, count in self._rows("tt_loss", "name")}

    # --- rows ---

    def _rows(self, table: str, key: str, first: int = 0, end: int | None = None, *, as_dict=False):
        """The rows in the order of the key, without their checksum, which is verified."""
        where, values = "", []
        if first or end is not None:
            where, values = f" WHERE {key} >= ?", [first]
        if end is not None:
            where, values = where + f" AND {key} < ?", values + [end]
        try:
            rows = self._db.execute(f"SELECT * FROM {table}{where} ORDER BY {key}", values)
            names = [column[0] for column in rows.description]
            for row in rows:
                if _checksum(row[:-1]) != row[-1]:
                    raise damage(self.path, f"a row of {table} has a wrong checksum")
                yield dict(zip(names, row)) if as_dict else row[:-1]
        except SQLITE_ERRORS as error:
            raise damage(self.path, error) from error

    def _within(self, what: str) -> _Within:
        return _Within(self.path, what)


class _Within:
    """Adds the file and the row to the error of a blob."""

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, _: object) -> None:
        if isinstance(error, DamagedSession):
            raise damage(self.path, f"{self.what}: {error}") from error


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _checksum(row: tuple) -> int:
    crc = 0
    for value in row:
        if isinstance(value, int):
            crc = zlib.crc32((value & (1 << 64) - 1).to_bytes(8, "little"), crc)
        elif isinstance(value, bytes):
            crc = zlib.crc32(value, zlib.crc32(len(value).to_bytes(8, "little"), crc))
    return crc


def _read_blob(blob: BlobReader, step: Step) -> None:
    step.ops_timed = blob.count(1)
    step._times = blob.skipped_varints(step.ops_timed)
    left = MAX_STEP_VALUES
    for _ in range(blob.count(2)):
        integers = blob.integers(left)
        left -= len(integers)
        floats = blob.floats(left)
        left -= len(floats)
        step.slots.append((integers, floats))
    for _ in range(blob.count(19)):
        op = blob.varint()
        values = [struct.unpack("<f", bytes(blob.byte() for _ in range(4)))[0] for _ in range(4)]
        step.stats.append(Stats(op, *values, nan=blob.varint(), inf=blob.varint()))
    blob.expect_end()


def _read_faults(blob: BlobReader, begin_ns: int) -> tuple[Integers, NDArray[np.uint64]]:
    count = blob.count(2)
    if count > MAX_STEP_FAULTS:
        raise DamagedSession("more page faults than the format allows")
    numbers = blob.varints(2 * count)
    blob.expect_end()
    at = np.cumsum(numbers[0::2].astype(np.int64)) + begin_ns
    zigzags = numbers[1::2]
    differences = (zigzags >> np.uint64(1)) ^ -(zigzags & np.uint64(1))
    return at, np.cumsum(differences, dtype=np.uint64)


# What of an op is captured, by its number in the file.
_VALUES_OF = {0: "", 1: "attention", 2: "lens", 16: "top"}
for _source in range(10):
    _VALUES_OF |= {3 + _source: f"src{_source}", 19 + _source: f"src{_source}.top"}
_HALF = 1 << 40  # stored as f16


def _read_values(packed: bytes) -> list[tuple[int, str, NDArray[np.float32]]]:
    head = 10 + MAX_CAPTURED_OUTPUTS * 5 * 10
    blob = BlobReader(unpacked(packed, head + 4 * MAX_CAPTURED_VALUES))
    outputs, left, last = [], MAX_CAPTURED_VALUES, (-1, 0)
    for _ in range(blob.count(5)):
        key, *ne = (blob.varint() for _ in range(5))
        of, op = divmod(key & ~_HALF, 1 << 32)
        if of not in _VALUES_OF:
            raise DamagedSession("an unknown kind of values")
        if (op, of) <= last:
            raise DamagedSession("ops that are not in order")
        last, elements = (op, of), math.prod(ne)
        if elements > left:
            raise DamagedSession("more captured values than the format allows")
        left -= elements
        while len(ne) > 1 and ne[-1] == 1:
            ne.pop()
        values = blob.array(elements, half=bool(key & _HALF))
        outputs.append((op, _VALUES_OF[of], values.reshape(ne[::-1])))
    blob.expect_end()
    return outputs


def _check_finished(path: Path, meta: dict[str, str]) -> None:
    if meta.get("state") != "running":
        return
    pid = meta.get("owner.pid", "")
    if _is_owner(pid, meta):
        raise RunningSession(
            f"{path} is still being recorded by process {pid}. Wait until it ends, or read the "
            "steps so far: tensor_trace.open(path, running=True)."
        )
    raise RunningSession(
        f"The recording of {path} was interrupted. `tt show {path}` recovers it; "
        "tensor_trace.open(path, running=True) reads it as it is."
    )


def _is_owner(pid: str, meta: dict[str, str]) -> bool:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        stat = Path(f"/proc/{int(pid)}/stat").read_text()
    except (OSError, ValueError):
        return False
    fields = stat[stat.rfind(")") + 1 :].split()
    return (
        fields[0] not in "ZX"
        and fields[19] == meta.get("owner.start")
        and boot == meta.get("owner.boot")
    )
