"""Sessions for the tests: models of `tt model`, recorded by `tt record`."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
TT = os.environ["TT_PROGRAM"]
EXTENSION = Path(os.environ["TENSOR_TRACE_EXTENSION"])

PROMPT = "1,290,300,310,290,320,330"
PROMPT_TOKENS = 7


@cache
def folder() -> Path:
    made = tempfile.mkdtemp(prefix="tt-python-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def run(*arguments: object) -> str:
    ran = subprocess.run(
        [TT, *map(str, arguments)], capture_output=True, text=True, errors="replace"
    )
    assert ran.returncode == 0, f"{arguments}: {ran.stderr}"
    return ran.stdout


_making = threading.Lock()


def model(shape: str, *options: str) -> Path:
    with _making:
        return _model(shape, *options)


@cache
def _model(shape: str, *options: str) -> Path:
    name = "-".join([shape, *(option.strip("-") for option in options)])
    path = folder() / f"{name}.gguf"
    run("model", shape, "--layers", "2", *options, "-q", "-o", path)
    return next(folder().glob(f"{name}-00001*"), path)


def session(
    shape: str = "small", *options: str, model_options: tuple = (), tokens: int = 6
) -> Path:
    """A session of 7 tokens of prompt and `tokens` of answer, greedy."""
    of = model(shape, *model_options)
    name = "_".join([of.stem, *options, str(tokens)]).replace("/", "-").replace(",", "-")
    path = folder() / f"{name[:100]}.ttrace"
    if path.exists():
        return path
    given = ("--tokens", PROMPT, "-n", tokens, "-t", 1, "--temp", 0, "--ignore-eos")
    run("record", "-q", "-m", of, "-o", path, *given, *options)
    return path


# Every kind of model that `tt model` makes, and of recording.
KINDS = {
    "dense": lambda: session("small"),
    "exact": lambda: session("small", "--exact", tokens=3),
    "verbose": lambda: session("small", "--level", "verbose", tokens=3),
    "minimal": lambda: session("small", "--level", "minimal", tokens=3),
    "faults": lambda: session("small", "--minor-faults", "--residency-interval", "0", tokens=3),
    "no_flash_attention": lambda: session("small", "-fa", "off", tokens=3),
    "tied": lambda: session("small", model_options=("--tied", "--quant", "f16"), tokens=3),
    "split": lambda: session("small", model_options=("--splits", "2"), tokens=3),
    "moe": lambda: session("moe"),
    "shared_experts": lambda: session("deepseek-like", tokens=3),
    "sliding_window": lambda: session("gpt-oss-like", tokens=3),
    "fine_experts": lambda: session("qwen3-moe-like", tokens=3),
    "state_space": lambda: session("mamba", tokens=3),
    "encoder_decoder": lambda: session("t5", tokens=3),
    "recurrent": lambda: session("rwkv", tokens=3),
    "embeddings": lambda: session("bert", tokens=1),
    **{
        f"version_{version}": lambda version=version: TREE / f"tests/data/session-v{version}.ttrace"
        for version in range(1, 7)
    },
}


def all_kinds() -> dict[str, Path]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(KINDS, pool.map(lambda make: make(), KINDS.values())))


def main() -> None:
    """Runs the tests of the calling module."""
    import unittest

    unittest.main(module="__main__", argv=sys.argv)
