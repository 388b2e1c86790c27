"""The examples of docs/python.md and of the docstrings, and the notebook, on recorded sessions."""

import ast
import doctest
import importlib
import os
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pandas as pd
from nbclient import NotebookClient

import sessions
import tensor_trace as tt

MODULES = ("tensor_trace", "tensor_trace.session", "tensor_trace.analyzer", "tensor_trace.figures")


def session() -> Path:
    return sessions.session("small", tokens=12)


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        link = sessions.folder() / "s.ttrace"
        link.symlink_to(session())
        cls.here = os.getcwd()
        os.chdir(sessions.folder())
        pd.set_option("display.width", 100)

    @classmethod
    def tearDownClass(cls) -> None:
        os.chdir(cls.here)

    def test_document(self) -> None:
        text = (sessions.TREE / "docs/python.md").read_text()
        test = doctest.DocTestParser().get_doctest(text, {}, "python.md", "docs/python.md", 0)
        self.run_examples([test], at_least=20)

    def test_docstrings(self) -> None:
        tests = []
        for name in MODULES:
            module = importlib.import_module(name)
            given = {"session": tt.open("s.ttrace"), "analyzer": tt.TraceAnalyzer("s.ttrace")}
            tests += doctest.DocTestFinder().find(module, extraglobs=given)
        self.run_examples(tests, at_least=18)

    def run_examples(self, tests: list[doctest.DocTest], at_least: int) -> None:
        output: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        for test in tests:
            runner.run(test, out=output.append)
        result = runner.summarize(verbose=False)
        self.assertEqual(result.failed, 0, "".join(output))
        self.assertGreaterEqual(result.attempted, at_least)


class NotebookTest(unittest.TestCase):
    def test_runs_from_top_to_bottom(self) -> None:
        paths = [session(), sessions.session("moe")]
        with ThreadPoolExecutor() as pool:
            dense, moe = pool.map(self.run_notebook, paths)
        with tt.open(paths[0]) as of:
            self.assertEqual(dense["accesses"], len(of.accesses(["step"], per_token=True)))
        self.assertTrue(dense["deterministic"])
        self.assertEqual(dense["hot_experts"], [])
        self.assertGreater(dense["kv_share"], 0)
        self.assertEqual(dense["images"], 6)
        self.assertFalse(moe["deterministic"])
        self.assertEqual(len(moe["hot_experts"]), 3)
        self.assertEqual(moe["images"], 7)

    def run_notebook(self, path: Path) -> dict:
        notebook = nbformat.read(sessions.TREE / "python/analysis.ipynb", as_version=4)
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        first.source = f"import os\nos.environ['TT_SESSION'] = {str(path)!r}\n{first.source}"
        NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
        images = 0
        for cell in notebook.cells:
            if cell.cell_type == "code":
                self.assertTrue(cell.outputs, cell.source)
                images += sum("image/png" in output.get("data", {}) for output in cell.outputs)
        found = notebook.cells[-1].outputs[0]["data"]["text/plain"]
        return {**ast.literal_eval(found), "images": images}


if __name__ == "__main__":
    sessions.main()
