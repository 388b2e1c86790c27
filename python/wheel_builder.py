"""Makes the wheel of tensor_trace with Python's standard library alone, so that the build needs no
network: a build backend (PEP 517) for `pip install python/`, and a program:

    python3 wheel_builder.py FOLDER
"""

import base64
import hashlib
import re
import sys
import tomllib
import zipfile
from pathlib import Path

_HERE = Path(__file__).parent
_TIME = (2026, 1, 1, 0, 0, 0)  # the same files give the same wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = tomllib.loads((_HERE / "pyproject.toml").read_text())["project"]
    name, version = project["name"], _version()
    info = f"{name}-{version}.dist-info"
    files = {
        path.relative_to(_HERE).as_posix(): path.read_bytes()
        for path in sorted((_HERE / name).rglob("*"))
        if path.suffix == ".py" or path.name == "py.typed"
    }
    files[f"{info}/METADATA"] = _metadata(project, version).encode()
    files[f"{info}/licenses/LICENSE"] = (_HERE.parent / "LICENSE").read_bytes()
    files[
        f"{info}/WHEEL"
    ] = b"Wheel-Version: 1.0\nGenerator: wheel_builder\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    wheel = Path(wheel_directory) / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, _TIME)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel.name


def _version():
    text = (_HERE / "tensor_trace" / "__init__.py").read_text()
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE).group(1)


def _metadata(project, version):
    extras = project["optional-dependencies"]
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {package}" for package in project["dependencies"]),
    ]
    for extra, packages in extras.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {package}; extra == "{extra}"' for package in packages]
    readme = (_HERE / project["readme"]).read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def _digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    print(build_wheel(sys.argv[1]))
