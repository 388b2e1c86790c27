"""Code as people write it for a table of accesses, on the data frame of TraceAnalyzer: plain pandas,
with the column names and codes that other tracers use. Each block runs on a dense model and on a
mixture of experts, and its numbers are compared with those of SQL."""

import json
import os
import unittest
import warnings

import pandas as pd
from matplotlib import pyplot

import sessions
from tensor_trace import Session, TraceAnalyzer, figures

TOKENS = sessions.PROMPT_TOKENS + 5  # evaluated: the last one is not


class BlocksTest(unittest.TestCase):
    """On a dense model."""

    shape = "small"

    @classmethod
    def setUpClass(cls) -> None:
        cls.session = Session(sessions.session(cls.shape))
        cls.analyzer = TraceAnalyzer(cls.session)
        cls.df = cls.analyzer.df
        cls.layers = cls.analyzer.num_layers
        cls.sql = staticmethod(lambda text: cls.session.sql(text).iloc[0, 0])
        cls.here = os.getcwd()
        os.chdir(sessions.folder())

    @classmethod
    def tearDownClass(cls) -> None:
        os.chdir(cls.here)
        pyplot.close("all")

    def setUp(self) -> None:
        warnings.simplefilter("ignore", pd.errors.SettingWithCopyWarning)

    def picture(self, name: str) -> None:
        pyplot.savefig(name, dpi=60)
        pyplot.close()
        self.assertGreater(os.path.getsize(name), 2000)

    def test_token_by_layer(self) -> None:
        counts = self.df.groupby(["token_id", "layer_id"]).size().unstack(fill_value=0)
        self.assertEqual(counts.shape, (TOKENS, self.layers))
        pyplot.imshow(counts, cmap="YlOrRd")
        self.picture("token_layer.png")
        of_answer = self.sql(
            "SELECT count(*) FROM access WHERE phase = 'generate' AND layer_id IS NOT NULL"
        )
        self.assertEqual(int(counts.loc[sessions.PROMPT_TOKENS :].to_numpy().sum()), of_answer)

    def test_offset_over_time(self) -> None:
        df = self.df
        pyplot.scatter(
            df["timestamp_ns"] / 1e9, df["file_offset"], c=df["token_id"], cmap="viridis", s=1
        )
        pyplot.colorbar(label="Token ID")
        self.picture("timeline.png")
        self.assertEqual(
            df.file_offset[df.phase == "generate"].max(),
            self.sql("SELECT max(file_offset) FROM access WHERE phase = 'generate'"),
        )

    def test_most_accessed_tensors(self) -> None:
        top = (
            self.df.groupby("tensor_name", observed=False)
            .size()
            .sort_values(ascending=False)
            .head(20)
        )
        top.plot(kind="barh")
        self.picture("hot.png")
        self.assertGreater(top.iloc[0], top.iloc[19])

    def test_layer_totals(self) -> None:
        totals = (
            self.df.groupby("layer_id")
            .agg({"tensor_name": "count", "size_bytes": "sum"})
            .rename(columns={"tensor_name": "access_count", "size_bytes": "total_bytes"})
        )
        # The bytes of a prompt are counted once, not once per token.
        self.assertAlmostEqual(
            totals.total_bytes.sum(),
            self.sql("SELECT sum(size_bytes) FROM access WHERE layer_id >= 0"),
            3,
        )

    def test_op_kinds(self) -> None:
        counts = self.df["operation_type"].value_counts()
        pyplot.pie(counts, labels=counts.index, autopct="%1.1f%%")
        self.picture("ops.png")
        self.assertEqual(counts.sum(), len(self.df))
        self.assertGreater(counts.min(), 0)
        self.assertEqual(
            (self.df.phase == "generate").sum(),
            self.sql("SELECT count(*) FROM access WHERE phase = 'generate'"),
        )

    def test_interactive_columns(self) -> None:
        hover = self.df[
            ["timestamp_ns", "file_offset", "token_id", "tensor_name", "layer_id", "operation_type"]
        ]
        rows = json.loads(hover.head(500).to_json(orient="records"))
        self.assertIsInstance(rows[0]["tensor_name"], str)
        self.assertEqual({row["layer_id"] for row in rows} - {None}, {0, 1})

    def test_experts_are_not_255(self) -> None:
        moe = self.df[self.df["expert_id"] != 255]
        self.assertEqual(len(moe), self.df.expert_id.notna().sum())
        usage = moe.groupby(["token_id", "expert_id"]).size().unstack(fill_value=0)
        totals = usage.sum(axis=0).sort_values(ascending=False)
        by_sql = self.session.sql(
            "SELECT expert_id, count(*) FROM access WHERE phase = 'generate' AND expert_id >= 0 GROUP BY 1"
        )
        generated = usage.loc[sessions.PROMPT_TOKENS :].sum() if len(usage) else totals
        self.assertEqual(generated[generated > 0].to_dict(), dict(by_sql.itertuples(index=False)))

    def test_q_k_v(self) -> None:
        attention = self.df[self.df["qkv_type"] != 0]
        counts = attention["qkv_type"].value_counts()
        for code in (1, 2, 3):  # every token reads the weights of Q, K and V once per layer
            self.assertEqual(counts.get(code, 0), TOKENS * self.layers)

    def test_roles_have_the_numbers_of_exports(self) -> None:
        sessions.run(
            *("export", self.session.path, "--format", "csv", "--per-token", "-q"),
            *("-o", f"{self.shape}.csv"),
        )
        exported = pd.read_csv(f"{self.shape}.csv")

        def numbers(of: pd.DataFrame) -> dict[str, int]:
            weights = of[of.tensor_kind == "weight"]
            return dict(zip(weights.tensor_name, weights.qkv_type, strict=True))

        self.assertEqual(numbers(self.df), numbers(exported))

    def test_heads(self) -> None:
        df = TraceAnalyzer(self.session, per_head=True).df
        counts = df[df["qkv_type"] != 0].groupby("attention_head").size()
        counts.plot(kind="bar")
        self.picture("heads.png")
        heads, heads_kv = self.session.info["n_heads"], self.session.info["n_heads_kv"]
        self.assertEqual(len(counts), heads)
        self.assertEqual(counts.loc[0], counts.loc[heads_kv - 1])
        self.assertGreater(counts.loc[0], 0)
        self.assertAlmostEqual(df.size_bytes.sum(), self.df.size_bytes.sum(), 3)

    def test_expected_number_of_accesses(self) -> None:
        expected = self.layers * self.analyzer.ops_per_layer * self.analyzer.num_tokens
        self.assertTrue(0.9 * expected < len(self.df) < 1.1 * expected)

    def test_tokens_are_in_order(self) -> None:
        tokens = self.df["token_id"].unique()
        self.assertEqual(list(tokens), list(range(max(tokens) + 1)))
        self.assertEqual(len(tokens), TOKENS)

    def test_all_layers_occur(self) -> None:
        layers = self.df["layer_id"].unique()
        self.assertTrue(set(layers) >= set(range(self.layers)))

    def test_offsets_are_in_the_file(self) -> None:
        size = os.path.getsize(self.analyzer.model_path)
        self.assertEqual(size, self.analyzer.model_size)
        self.assertEqual(len(self.df[self.df["file_offset"] > size]), 0)

    def test_each_token_reads_each_weight_once(self) -> None:
        hot = self.df.groupby("tensor_name", observed=False).size().sort_values(ascending=False)
        self.assertEqual(hot["token_embd.weight"], TOKENS)
        self.assertEqual(hot["blk.0.attn_q.weight"], TOKENS)
        self.assertEqual(hot["blk.1.attn_k.weight"], TOKENS)

    def test_pattern_of_a_token(self) -> None:
        self.analyzer.session.weights().to_csv("gguf_structure.csv", index=False)
        gguf = pd.read_csv("gguf_structure.csv")
        token = sessions.PROMPT_TOKENS
        pattern = self.df[self.df["token_id"] == token][
            ["tensor_name", "size_bytes", "timestamp_ns"]
        ].copy()
        pattern = pattern.merge(
            gguf[["tensor_name", "file_offset", "layer_id", "component_type"]], on="tensor_name"
        ).sort_values("timestamp_ns")
        got = {
            (
                row["tensor_name"],
                int(row["file_offset"]),
                int(row["size_bytes"]),
                int(row["layer_id"]),
            )
            for _, row in pattern.iterrows()
        }
        # Of a row of the embedding, the table of weights has the place of the whole tensor.
        by_sql = self.session.sql(
            "SELECT coalesce(expert_name, tensor_name), iif(extent = 'rows', tensor_file_offset, "
            "file_offset), size_bytes, coalesce(layer_id, -1) FROM access WHERE phase = 'generate' "
            f"AND token_id = {token} AND tensor_kind = 'weight'"
        )
        self.assertEqual(got, set(by_sql.itertuples(index=False, name=None)))
        self.assertEqual(self.analyzer.save_pattern("pattern.json"), len(by_sql))
        saved = json.load(open("pattern.json"))["per_token_pattern"]
        self.assertEqual(
            {(e["tensor_name"], e["file_offset"], e["size_bytes"], e["layer_id"]) for e in saved},
            got,
        )

    def test_determinism(self) -> None:
        first = sessions.PROMPT_TOKENS
        patterns = [
            self.df[self.df["token_id"] == first + i]["tensor_name"].values for i in range(3)
        ]
        same = all((one == patterns[0]).all() for one in patterns)
        self.assertEqual(same, self.expected_determinism())
        self.assertEqual(self.analyzer.is_deterministic(), same)

    def expected_determinism(self) -> bool:
        return True

    def test_experts_by_name(self) -> None:
        moe = self.df[self.df["tensor_name"].str.contains("expert_")]
        moe["expert_id"] = moe["tensor_name"].str.extract(r"expert_(\d+)")[0].astype(int)
        moe["layer_id"] = moe["tensor_name"].str.extract(r"blk\.(\d+)")[0].astype(int)
        usage = (
            moe.groupby(["token_id", "layer_id", "expert_id"])
            .size()
            .reset_index(name="access_count")
        )
        totals = moe.groupby("expert_id").size().sort_values(ascending=False)
        self.check_experts(moe, usage, totals)

    def check_experts(self, moe: pd.DataFrame, usage: pd.DataFrame, totals: pd.Series) -> None:
        self.assertEqual(len(moe), 0)


class ExpertBlocksTest(BlocksTest):
    """On a mixture of experts."""

    shape = "moe"

    def expected_determinism(self) -> bool:
        chosen = self.session.sql(
            "SELECT step, group_concat(layer_id || '/' || expert_id) AS experts FROM "
            "(SELECT * FROM expert WHERE phase = 'generate' ORDER BY step, layer_id, expert_id) GROUP BY step"
        )
        return chosen.experts.nunique() == 1

    def check_experts(self, moe: pd.DataFrame, usage: pd.DataFrame, totals: pd.Series) -> None:
        self.assertEqual(totals.sum(), self.df.expert_id.notna().sum())
        self.assertTrue((usage.access_count == 3).all())  # up, gate and down
        used = int(self.session.info["n_experts_used"])
        per_layer = moe.groupby(["token_id", "layer_id"])["expert_id"].nunique()
        self.assertEqual(set(per_layer), {used})
        by_sql = self.session.sql("SELECT expert_id, count(*) AS n FROM expert GROUP BY 1")
        self.assertEqual((totals / 3).to_dict(), dict(by_sql.itertuples(index=False)))
        analyzer = self.analyzer
        self.assertEqual(
            analyzer.expert_usage().sum().sort_values(ascending=False).iloc[0], totals.iloc[0]
        )
        self.assertEqual(totals[analyzer.hot_experts(1)[0]], totals.max())
        self.assertEqual(totals[analyzer.cold_experts(1)[0]], totals.min())

    def test_saved_rows_are_the_same(self) -> None:
        dpi, figures.DPI = figures.DPI, 30
        self.addCleanup(setattr, figures, "DPI", dpi)
        files = [path.name for path in self.analyzer.save("saved")]
        names = {
            "trace.parquet",
            "gguf_structure.csv",
            "access_pattern.json",
            "timeline_offset.png",
        }
        self.assertLessEqual(names, set(files))
        pd.testing.assert_frame_equal(pd.read_parquet("saved/trace.parquet"), self.df)


if __name__ == "__main__":
    sessions.main()
