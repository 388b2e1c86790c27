"""Several sessions in one data frame, beside `tt sql` over the same files."""

import json
import shutil
import unittest
from pathlib import Path

import sessions
import tensor_trace as tt


class SessionSetTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = sessions.folder() / "set"
        for name, path in {
            "a/first": sessions.session("small"),
            "a/second": sessions.session("moe"),
            "b/first": sessions.session("small", tokens=3),
        }.items():
            to = self.folder / f"{name}.ttrace"
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)

    def rows(self, statement: str, *files: object) -> list:
        return json.loads(sessions.run("sql", *files, statement, "--json"))["rows"]

    def test_equals_tt_sql(self) -> None:
        for files in (self.folder / "a", f"{self.folder}/*/*.ttrace"):
            with self.subTest(files=files):
                runs = tt.open_set(files)
                sums = runs.steps().groupby("session", observed=True).bytes_read.sum()
                self.assertEqual(
                    [[name, int(value)] for name, value in sums.items()],
                    self.rows(
                        "SELECT session, sum(bytes_read) FROM step GROUP BY session", files
                    ),
                )
                kinds = runs.ops(["operation_type"], steps=range(1, 3))
                counts = kinds.groupby(["session", "operation_type"], observed=True).size()
                self.assertEqual(
                    sorted([*key, int(value)] for key, value in counts.items()),
                    sorted(
                        self.rows(
                            "SELECT session, operation_type, count(*) FROM op WHERE step IN (1, 2) "
                            "GROUP BY 1, 2",
                            files,
                        )
                    ),
                )
                self.assertEqual(list(runs.tokens())[0], "session")
                self.assertEqual(
                    len(runs.experts()), self.rows("SELECT count(*) FROM expert", files)[0][0]
                )

    def test_names_and_loop(self) -> None:
        runs = tt.open_set([self.folder / "a", self.folder / "b/first.ttrace"])
        self.assertEqual(
            runs.names, [f"{self.folder}/a/first", f"{self.folder}/b/first", "second"]
        )
        self.assertEqual(len(runs), 3)
        self.assertIn("SessionSet of 3", repr(runs))
        steps = {name: len(session.steps()) for name, session in runs}
        self.assertEqual(list(steps), runs.names)
        self.assertEqual(len(runs.steps()), sum(steps.values()))
        with runs.open("second") as session:
            self.assertTrue(session.is_moe)

    def test_says_what_is_missing(self) -> None:
        Path(self.folder / "empty").mkdir(exist_ok=True)
        with self.assertRaisesRegex(tt.MissingSession, "without sessions"):
            tt.open_set(self.folder / "empty")
        with self.assertRaisesRegex(tt.MissingSession, "No file matches"):
            tt.open_set(f"{self.folder}/c*")
        with self.assertRaises(tt.MissingSession):
            tt.open_set(self.folder / "none.ttrace").steps()


if __name__ == "__main__":
    sessions.main()
