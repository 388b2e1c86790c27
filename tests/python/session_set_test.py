"""Several sessions in one data frame, beside `tt sql` over the same files."""

import json
import math
import re
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

    def test_trend_is_that_of_tt_trend(self) -> None:
        folder = self.folder / "days"
        folder.mkdir(parents=True, exist_ok=True)
        # The same answers, longer and longer, as if recorded on seven days.
        start = r'"start_utc_ns":\d+'
        for day in range(7):
            log = self.folder / "day.ndjson"
            sessions.run("export", sessions.session("small", tokens=2 + day), "--force", "-o", log)
            ns = 1_700_000_000_000_000_000 + day * 86_400_000_000_000
            log.write_text(re.sub(start, f'"start_utc_ns":{ns}', log.read_text(), count=1))
            sessions.run("import", log, "--force", "-o", folder / f"{day}.ttrace")
        runs = tt.open_set(folder)
        for by in ("day", "session"):
            with self.subTest(by=by):
                trend = runs.trend(by, program=sessions.TT)
                found = json.loads(sessions.run("trend", folder, "--json", "--by", by))
                (group,) = found["groups"]
                self.assertEqual(trend.by, by)
                self.assertEqual(trend.groups.sessions.to_list(), [7])
                self.assertEqual(trend.sentences, [of["sentence"] for of in group["figures"]])
                for of in group["figures"]:
                    row = trend.figures[trend.figures.figure == of["name"]].iloc[0]
                    for name in ("p", "slope", "low", "high"):
                        value = (of["trend"] or {}).get(name)
                        self.assertTrue(row[name] == value or (value is None and math.isnan(row[name])))
        # The medians are also those of the data frames.
        steps = runs.steps(["phase", "bytes_read", "token_count"])
        of_answer = steps[steps.phase == "generate"].groupby("session", observed=True)
        per_token = of_answer.bytes_read.sum() / of_answer.token_count.sum()
        name = "bytes read per generated token"
        points = trend.points[trend.points.figure == name]
        self.assertEqual(points["median"].to_list(), per_token.to_list())
        self.assertEqual(points["names"].to_list(), [[one] for one in runs.names])
        self.assertTrue(trend.figures[trend.figures.figure == name].significant.all())
        for of in (trend, runs.trend(program=sessions.TT)):
            axes = tt.figures.trend(of, name).axes[0]
            self.assertEqual(axes.get_ylabel(), "MiB")
            drawn = axes.lines[0].get_ydata()
            self.assertEqual([round(2**20 * value) for value in drawn], per_token.round().to_list())
            self.assertEqual(len(axes.lines), 2)  # the slope
        with self.assertRaisesRegex(tt.NoData, name):
            tt.figures.trend(trend, "speed")
        with self.assertRaisesRegex(tt.SessionError, "not found. Install"):
            runs.trend(program="/none/tt")

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
