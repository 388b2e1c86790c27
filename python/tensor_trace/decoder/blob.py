"""The integers and texts of packed blobs (docs/trace-format.md, "Blobs")."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedSession

MAX_UNPACKED_BYTES = 4 << 20  # of a template or an allocation
NONE = -1  # an index that refers to nothing

_MASK = (1 << 64) - 1
_FEW = 12


def unpacked(frame: bytes, most: int = MAX_UNPACKED_BYTES) -> bytes:
    """The content of a zstd frame, whose size is checked before memory is allocated."""
    size = _content_size(frame)
    if size is None:
        raise DamagedSession("not a zstd frame")
    if size > most:
        raise DamagedSession("larger than the format allows")
    try:
        content = _decompress(frame, most)
    except (DamagedSession, ImportError):
        raise
    except Exception as error:  # each library has its own class of errors
        raise DamagedSession("invalid zstd frame") from error
    if len(content) != size:
        raise DamagedSession("invalid zstd frame")
    return content


def _decompress(frame: bytes, most: int) -> bytes:
    try:
        from compression import zstd  # Python 3.14

        return zstd.decompress(frame)
    except ImportError:
        pass
    try:
        import zstandard

        return zstandard.ZstdDecompressor().decompress(frame, max_output_size=most)
    except ImportError:
        return _decompress_with_libzstd(frame)


def _decompress_with_libzstd(frame: bytes) -> bytes:
    """With the library of the system: Debian's Python before 3.14 has no zstd."""
    name = ctypes.util.find_library("zstd")
    if name is None:
        raise ImportError(
            "Reading a session needs zstd. Python 3.14 has it; for an older Python: "
            "pip install zstandard"
        )
    library = ctypes.CDLL(name)
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    content = ctypes.create_string_buffer(_content_size(frame) or 1)
    size = library.ZSTD_decompress(content, len(content), frame, len(frame))
    if size > len(content):  # an error code
        raise DamagedSession("invalid zstd frame")
    return content.raw[:size]


def _content_size(frame: bytes) -> int | None:
    """The size in the frame header (RFC 8878, 3.1.1.1); None: not a frame, or without a size."""
    if frame[:4] != b"\x28\xb5\x2f\xfd" or len(frame) < 6:
        return None
    descriptor = frame[4]
    single_segment = descriptor >> 5 & 1
    size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    at = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
    if size_bytes == 0 or at + size_bytes > len(frame):
        return None
    size = int.from_bytes(frame[at : at + size_bytes], "little")
    return size + 256 if size_bytes == 2 else size


class BlobReader:
    """Reads a blob from its begin. Raises DamagedSession if the blob ends too early."""

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._bytes = np.frombuffer(blob, np.uint8)
        self._at = 0

    def remaining(self) -> int:
        return len(self._blob) - self._at

    def expect_end(self) -> None:
        if self.remaining():
            raise DamagedSession(f"{self.remaining()} bytes after the end of a blob")

    def byte(self) -> int:
        if not self.remaining():
            raise DamagedSession("a blob ends too early")
        self._at += 1
        return self._blob[self._at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if value > _MASK:
                    raise DamagedSession("a number with more than 64 bits")
                return value
            if shift >= 70:
                raise DamagedSession("a number with more than 10 bytes")

    def zigzag(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def count(self, least_bytes: int) -> int:
        """The number of items that follow, each of which has at least so many bytes."""
        value = self.varint()
        if value * least_bytes > self.remaining():
            raise DamagedSession("a list is longer than its blob")
        return value

    def index(self, length: int) -> int:
        value = self.varint()
        if value >= length:
            raise DamagedSession("an index exceeds its list")
        return value

    def ref(self) -> int:
        return self.varint() - 1

    def enum(self, names: tuple[str, ...]) -> int:
        value = self.byte()
        if value >= len(names):
            raise DamagedSession("a value that the format does not have")
        return value

    def text(self) -> str:
        length = self.count(1)
        self._at += length
        return self._blob[self._at - length : self._at].decode("utf-8", "replace")

    def varints(self, count: int) -> NDArray[np.uint64]:
        """`count` varints at once."""
        if count <= _FEW:  # faster one by one
            return np.array([self.varint() for _ in range(count)], np.uint64)
        window = self._bytes[self._at : self._at + 10 * count]
        ends = np.flatnonzero(window < 0x80)[:count] + 1
        if len(ends) < count:
            raise DamagedSession("a blob ends too early")
        begins = np.concatenate(([0], ends[:-1]))
        lengths = ends - begins
        if lengths.max() > 10:
            raise DamagedSession("a number with more than 10 bytes")
        values = np.zeros(count, np.uint64)
        for i in range(int(lengths.max())):
            longer = np.flatnonzero(lengths > i)
            part = (window[begins[longer] + i] & 0x7F).astype(np.uint64)
            values[longer] |= part << np.uint64(7 * i)
        self._at += int(ends[-1])
        return values

    def skipped_varints(self, count: int) -> bytes:
        """The bytes of `count` varints, which are not looked at."""
        ends = np.flatnonzero(self._bytes[self._at : self._at + 10 * count] < 0x80)
        if len(ends) < count:
            raise DamagedSession("a blob ends too early")
        begin = self._at
        self._at += int(ends[count - 1]) + 1 if count else 0
        return self._blob[begin : self._at]

    def zigzags(self, count: int) -> NDArray[np.int64]:
        values = self.varints(count)
        return (values >> np.uint64(1)).astype(np.int64) ^ -(values & np.uint64(1)).astype(np.int64)

    def floats(self, most: int) -> NDArray[np.float32]:
        count = self.count(4)
        if count > most:
            raise DamagedSession("too many slot values")
        return self.array(count)

    def array(self, count: int, half: bool = False) -> NDArray[np.float32]:
        """`count` numbers of 4 bytes; `half`: of 2 bytes."""
        size = count * (2 if half else 4)
        if size > self.remaining():
            raise DamagedSession("a blob ends too early")
        self._at += size
        values = np.frombuffer(self._blob, "<f2" if half else "<f4", count, self._at - size)
        return values.astype(np.float32) if half else values

    def integers(self, most: int) -> NDArray[np.int64]:
        """A `list`: differences, one by one or in runs."""
        head = self.varint()
        count = head >> 1
        if count > most:
            raise DamagedSession("too many slot values")
        if head & 1 == 0:
            return np.cumsum(self.zigzags(count))
        differences, counts, done = [], [], 0
        while done < count:
            differences.append(self.zigzag())
            counts.append(self.varint())
            done += counts[-1]
            if counts[-1] == 0 or done > count:
                raise DamagedSession("a run exceeds its list")
        return np.cumsum(np.repeat(np.array(differences, np.int64), counts))
