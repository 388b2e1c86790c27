"""The wheel: unpacked alone, it reads a session without the source tree, the extension and tt."""

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import sessions

WHEEL = Path(os.environ["TT_WHEEL"])


class WheelTest(unittest.TestCase):
    def test_reads_a_session_alone(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(WHEEL).extractall(folder)
            program = (
                "import sys, tensor_trace as tt\n"
                "session = tt.open(sys.argv[1])\n"
                "print(tt.__file__, session.reader, session._extension, len(session.accesses()))\n"
                "print(session.sql('SELECT count(*) FROM access').iloc[0, 0])\n"
            )
            environment = {"PYTHONPATH": folder, "PATH": "/usr/bin:/bin", "HOME": folder,
                           "TENSOR_TRACE_EXTENSION": "/nonexistent"}  # fmt: skip
            output = subprocess.run(
                [sys.executable, "-c", program, sessions.session("moe")],
                env=environment, capture_output=True, text=True, check=True, cwd=folder,
            ).stdout  # fmt: skip
            file, reader, extension, rows, by_sql = output.split()
            self.assertTrue(file.startswith(folder))
            self.assertEqual((reader, extension), ("decoder", "None"))
            self.assertEqual(rows, by_sql)
            self.assertGreater(int(rows), 1000)

    def test_content(self) -> None:
        archive = zipfile.ZipFile(WHEEL)
        info = f"{WHEEL.name.removesuffix('-py3-none-any.whl')}.dist-info"
        package = sessions.TREE / "python/tensor_trace"
        wanted = {p.relative_to(package.parent).as_posix() for p in package.rglob("*.py")}
        wanted |= {
            "tensor_trace/py.typed",
            *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")),
        }
        self.assertEqual(set(archive.namelist()), wanted)
        record = csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode()))
        for path, digest, size in record:
            if not digest:
                continue
            content = archive.read(path)
            right = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            self.assertEqual((digest, int(size)), (f"sha256={right}", len(content)), path)
        self.assertIn("Requires-Dist: pandas>=2.0", archive.read(f"{info}/METADATA").decode())

    def test_version_is_that_of_tensor_trace(self) -> None:
        project = (sessions.TREE / "CMakeLists.txt").read_text()
        version = re.search(r"project\(tensor-trace VERSION (\S+)", project).group(1)
        self.assertIn(f"-{version}-", WHEEL.name)
        source = (sessions.TREE / "python/tensor_trace/__init__.py").read_text()
        self.assertIn(f'__version__ = "{version}"', source)


if __name__ == "__main__":
    sessions.main()
