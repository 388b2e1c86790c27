"""The figures: their numbers are those of SQL, axes have labels and units, and files have pixels."""

import importlib.util
import struct
import unittest

import numpy as np

import sessions
import tensor_trace as tt
from tensor_trace import figures

TOKENS = sessions.PROMPT_TOKENS + 5  # evaluated


def image_of(figure: figures.SessionFigure) -> np.ndarray:
    return figure.axes[0].images[0].get_array().data


class FiguresTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.dense = tt.open(sessions.session("small"))
        cls.moe = tt.open(sessions.session("moe"))

    def test_token_by_layer(self) -> None:
        figure = figures.heat_map_token_layer(self.moe)
        counts = image_of(figure)
        self.assertEqual(counts.shape, (2, TOKENS))
        by_sql = self.moe.sql(
            "SELECT token_id, layer_id, count(*) AS n FROM access WHERE phase = 'generate' AND "
            "layer_id >= 0 GROUP BY 1, 2"
        )
        for row in by_sql.itertuples():
            self.assertEqual(counts[row.layer_id, row.token_id], row.n)
        self.assertEqual(figure.axes[0].images[0].get_cmap().name, "YlOrRd")
        self.assertEqual(figure.axes[0].get_xlabel(), "token")
        self.assertEqual([axes.get_ylabel() for axes in figure.axes], ["layer", "accesses"])

    def test_bytes_of_a_prompt_are_counted_once(self) -> None:
        figure = figures.heat_map_token_layer(self.moe, "bytes")
        unit = {"bytes": 1, "KiB": 2**10, "MiB": 2**20}[figure.axes[1].get_ylabel()]
        total = self.moe.sql("SELECT sum(size_bytes) FROM access WHERE layer_id >= 0").iloc[0, 0]
        self.assertAlmostEqual(image_of(figure).sum() * unit / total, 1, 6)

    def test_token_by_weight(self) -> None:
        figure = figures.heat_map_token_tensor(self.moe, "bytes", top=200)
        unit = {"bytes": 1, "KiB": 2**10, "MiB": 2**20}[figure.axes[1].get_ylabel()]
        total = self.moe.sql(
            "SELECT sum(size_bytes) FROM access WHERE tensor_kind = 'weight'"
        ).iloc[0, 0]
        self.assertAlmostEqual(image_of(figure).sum() * unit / total, 1, 6)
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        places = self.moe.weights().set_index("tensor_name").file_offset
        self.assertEqual(names, sorted(names, key=lambda name: places[name]))
        self.assertEqual(
            image_of(figures.heat_map_token_tensor(self.moe, top=5)).shape, (5, TOKENS)
        )

    def test_timeline(self) -> None:
        figure = figures.timeline(self.dense)
        points = figure.axes[0].collections[0]
        reads = self.dense.sql(
            "SELECT count(*) FROM access WHERE file_offset >= 0 AND NOT write"
        ).iloc[0, 0]
        self.assertEqual(len(points.get_offsets()), reads)
        self.assertEqual(points.get_cmap().name, "viridis")
        self.assertRegex(figure.axes[0].get_xlabel(), r"time since the start of the session, m?s")
        self.assertRegex(figure.axes[0].get_ylabel(), r"file offset, MiB")
        self.assertEqual(figure.axes[1].get_ylabel(), "token")
        part = figures.timeline(self.dense, range(1, 2)).axes[0].collections[0]
        self.assertLess(len(part.get_offsets()), reads / 4)

    def test_a_long_timeline_is_thinned_evenly(self) -> None:
        most, figures._MOST_POINTS = figures._MOST_POINTS, 40
        try:
            figure = figures.timeline(self.dense)
        finally:
            figures._MOST_POINTS = most
        points = figure.axes[0].collections[0]
        self.assertLessEqual(len(points.get_offsets()), 40)
        self.assertGreater(len(points.get_offsets()), 10)
        self.assertRegex(figure.axes[0].get_title(), r"one of \d+ reads")
        self.assertGreater(len(set(points.get_array())), 3)  # tokens

    def test_the_files_of_a_split_model_follow_each_other(self) -> None:
        path = sessions.session("small", model_options=("--splits", "2"), tokens=3)
        with tt.open(path) as session:
            sizes = session.table("model").size_bytes
            drawn = figures.timeline(session).axes[0].collections[0].get_offsets()[:, 1] * 2**20
            self.assertGreater((drawn > sizes[0]).sum(), 10)
            self.assertLess(drawn.max(), sizes.sum())

    def test_hot_tensors(self) -> None:
        figure = figures.hot_tensors(self.dense, top=5, value="bytes")
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()][::-1]
        by_sql = self.dense.sql(
            "SELECT tensor_name FROM hottest_tensors WHERE tensor_kind = 'weight' LIMIT 1"
        )
        self.assertEqual(names[0], by_sql.tensor_name[0])
        self.assertEqual(figure.axes[0].get_xlabel(), "MiB")
        every = figures.hot_tensors(self.dense, top=30, kind=None)
        self.assertEqual(len(every.axes[0].patches), 30)
        self.assertIsNotNone(every.axes[0].get_legend())

    def test_op_kinds(self) -> None:
        figure = figures.op_kinds(self.dense)
        self.assertEqual(len(figure.axes), 3)
        for axes in figure.axes:
            self.assertAlmostEqual(sum(w.theta2 - w.theta1 for w in axes.patches), 360, 2)
        by_sql = self.dense.sql(
            "SELECT operation_type FROM op_time ORDER BY bytes_read + bytes_written DESC"
        )
        self.assertEqual(figure.axes[1].texts[0].get_text(), by_sql.operation_type[0])

    def test_experts(self) -> None:
        figure = figures.expert_token(self.moe)
        counts = image_of(figure)
        by_sql = self.moe.sql(
            "SELECT expert_id, token_id, count(*) AS n FROM expert WHERE token_id >= 0 GROUP BY 1, 2"
        )
        self.assertEqual(counts.sum(), by_sql.n.sum())
        for row in by_sql.itertuples():
            self.assertEqual(counts[row.expert_id, row.token_id], row.n)
        one = image_of(figures.expert_token(self.moe, layer=0))
        self.assertEqual(set(one.sum(axis=0)), {self.moe.info["n_experts_used"]})
        with self.assertRaises(tt.NoData):
            figures.expert_token(self.moe, layer=9)

    def test_heads(self) -> None:
        figure = figures.heads(self.dense)
        heads, heads_kv = self.dense.info["n_heads"], self.dense.info["n_heads_kv"]
        heights = {
            bars.get_label(): [bar.get_height() for bar in bars]
            for bars in figure.axes[0].containers
        }
        self.assertEqual(heights["Q"], [2 * TOKENS] * heads)
        self.assertEqual(heights["K"], [2 * TOKENS] * heads_kv + [0] * (heads - heads_kv))
        with tt.open(sessions.session("mamba", tokens=3)) as session:
            with self.assertRaisesRegex(tt.NoData, "no attention"):
                figures.heads(session)

    def test_files_have_300_dots_per_inch(self) -> None:
        figure = figures.expert_token(self.moe)
        path = sessions.folder() / "experts.png"
        figure.savefig(path)
        content = path.read_bytes()
        at = content.index(b"pHYs") + 4
        self.assertEqual(struct.unpack(">II", content[at : at + 8]), (11811, 11811))  # per metre
        width, height = struct.unpack(">II", content[16:24])
        self.assertGreater(width, 2400)
        self.assertTrue(figure._repr_png_().startswith(b"\x89PNG"))

    def test_every_kind_of_model_can_be_drawn(self) -> None:
        folder = sessions.folder() / "all"
        drawn, dpi, figures.DPI = {}, figures.DPI, 40
        self.addCleanup(setattr, figures, "DPI", dpi)
        for shape in ("moe", "rwkv"):
            with tt.open(sessions.session(shape, tokens=6 if shape == "moe" else 3)) as session:
                drawn[shape] = {path.stem for path in figures.save_all(session, folder / shape)}
        self.assertEqual(drawn["moe"], set(figures.ALL))
        without_experts = set(figures.ALL) - {"expert_token"}
        self.assertEqual(drawn["rwkv"], without_experts - {"attention_heads"})

    def test_interactive_figures(self) -> None:
        if importlib.util.find_spec("plotly") is None:
            with self.assertRaisesRegex(ImportError, "pip install plotly"):
                figures.interactive_timeline(self.dense)
            return
        timeline = figures.interactive_timeline(self.dense).to_json()
        self.assertIn("blk.0.attn_q.weight", timeline)
        self.assertIn(
            "Accesses by token and layer", figures.interactive_heat_map(self.moe).to_json()
        )


if __name__ == "__main__":
    sessions.main()
