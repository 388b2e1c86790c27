"""The questions that data frames of accesses are asked first, as methods."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd

from . import figures
from .decoder.graph import ATTENTION_ROLES
from .errors import NoData
from .figures import SessionFigure, Value
from .session import Session, open

# The numbers of `qkv_type` in exports with --per-token.
_ROLES = {role: number for number, role in enumerate(ATTENTION_ROLES, 1)}
_COLUMNS = [
    "step", "op", "access", "part", "timestamp_ns", "duration_ns", "token_id", "token_count", "phase",
    "operation_type", "op_layer_id", "write", "tensor_name", "tensor_type", "tensor_kind", "layer_id",
    "component", "role", "memory_source", "model_file", "file_offset", "file_bytes", "size_bytes",
    "qkv_type", "attention_head", "expert_id", "expert_rank", "routing_score", "expert_name",
]  # fmt: skip
NO_EXPERT = 255


class TraceAnalyzer:
    """Analyses one session, with one row per token and access in memory (`df`).

    `df` has the columns of docs/sql.md, in a form that plain pandas code needs no care for:

    - Each token has its own rows. The tokens of a prompt share the bytes of a read: `size_bytes`
      is the share of the token (a fraction), so sums over tokens are right.
    - An access of an expert has the expert in its name: `blk.5.expert_3.ffn_up.weight`.
    - `expert_id` is NA (also `!= 255` is then not true) for an access of no expert.
    - `qkv_type` is that of a weight: 1 Q, 2 K, 3 V, 4 for Q, K and V together, 5 O; otherwise 0.
    - `layer_id` is NaN for no layer.
    - `attention_head` is NA, unless `per_head=True`: then the read of a weight of Q, K, V or O has
      one row per head.

    >>> analyzer = TraceAnalyzer("s.ttrace")
    >>> analyzer.hot_tensors(100)["token_embd.weight"]
    np.int64(18)
    >>> analyzer.is_deterministic()
    True
    """

    def __init__(
        self,
        session: Session | str | os.PathLike[str],
        *,
        per_head: bool = False,
        steps: range | None = None,
    ) -> None:
        self.session = session if isinstance(session, Session) else open(session)
        self._per_head, self._steps = per_head, steps
        self._df: pd.DataFrame | None = None

    @property
    def df(self) -> pd.DataFrame:
        if self._df is None:
            self._df = self._frame()
        return self._df

    def _frame(self) -> pd.DataFrame:
        frame = self.session.accesses(
            _COLUMNS, self._steps, per_token=True, per_head=self._per_head
        )
        if not len(frame):
            raise NoData(figures._no_accesses(self.session))
        experts = frame.expert_id.notna()
        names = frame.tensor_name.astype(object)
        names[experts] = frame.expert_name[experts].astype(object)
        codes, texts = pd.factorize(names)
        frame["tensor_name"] = pd.Categorical.from_codes(codes, texts)
        frame["size_bytes"] = frame.size_bytes / frame.token_count
        roles = frame.qkv_type.where(frame.tensor_kind == "weight").map(_ROLES)
        frame["qkv_type"] = roles.astype("float64").fillna(0).astype("int8")
        for name in ("layer_id", "op_layer_id"):
            frame[name] = frame[name].astype("float64")
        for name in frame.columns[frame.dtypes == "category"]:
            frame[name] = frame[name].cat.remove_unused_categories()
        return frame.drop(columns="expert_name")

    # --- numbers of the session ---

    @property
    def num_layers(self) -> int:
        return int(self.session.info["n_layers"])

    @property
    def num_tokens(self) -> int:
        """Tokens that a step evaluated."""
        return int(self.df.token_id.nunique())

    @property
    def ops_per_layer(self) -> float:
        """Accesses of the last token, divided by the layers."""
        last = self.df.token_id == self.df.token_id.max()
        return float(last.sum()) / max(self.num_layers, 1)

    @property
    def model_path(self) -> str:
        """The first file of the model, where it was when the session was recorded; a relative path
        is also looked for beside the session."""
        path = str(self.session.table("model").path.iloc[0])
        beside = self.session.path.parent / path
        return str(beside) if not os.path.exists(path) and beside.exists() else path

    @property
    def model_size(self) -> int:
        """The bytes of all files of the model."""
        return int(self.session.table("model").size_bytes.sum())

    # --- figures ---

    def heatmap_token_layer(self, value: Value = "accesses") -> SessionFigure:
        return figures.heat_map_token_layer(self.session, value)

    def heatmap_token_tensor(self, value: Value = "accesses", top: int = 40) -> SessionFigure:
        return figures.heat_map_token_tensor(self.session, value, top)

    def timeline(self) -> SessionFigure:
        return figures.timeline(self.session, self._steps)

    def plot_hot_tensors(self, top: int = 20, value: Value = "accesses") -> SessionFigure:
        return figures.hot_tensors(self.session, top, value)

    def plot_operation_types(self) -> SessionFigure:
        return figures.op_kinds(self.session)

    def plot_experts(self, layer: int | None = None) -> SessionFigure:
        return figures.expert_token(self.session, layer)

    def plot_heads(self, value: Value = "accesses") -> SessionFigure:
        return figures.heads(self.session, value)

    # --- sums ---

    def hot_tensors(self, top: int = 20) -> pd.Series:
        """Accesses by tensor, most first. Each token counts."""
        of = self.df.groupby("tensor_name", observed=True).size()
        return of.sort_values(ascending=False, kind="stable").head(top)

    def layer_stats(self) -> pd.DataFrame:
        """Accesses and bytes by layer.

        >>> analyzer.layer_stats().access_count.tolist()
        [846, 828]
        """
        return self.df.groupby("layer_id").agg(
            access_count=("tensor_name", "size"), total_bytes=("size_bytes", "sum")
        )

    def operation_types(self) -> pd.Series:
        return self.df.operation_type.value_counts()

    def qkv_counts(self) -> dict[str, int]:
        """Accesses of weights of attention, by role.

        >>> analyzer.qkv_counts()
        {'Q': 36, 'K': 36, 'V': 36, 'O': 36}
        """
        counts = self.df.qkv_type.value_counts()
        return {role: int(counts[code]) for role, code in _ROLES.items() if code in counts}

    def expert_usage(self) -> pd.DataFrame:
        """Rows: tokens, columns: experts, values: accesses of weights. Raises NoData without
        experts."""
        experts = self.df[self.df.expert_id.notna()]
        if not len(experts):
            raise NoData(f"{self.session.path.name} has no accesses of experts.")
        return experts.groupby(["token_id", "expert_id"]).size().unstack(fill_value=0)

    def hot_experts(self, top: int = 5) -> list[int]:
        totals = self.expert_usage().sum().sort_values(ascending=False, kind="stable")
        return [int(expert) for expert in totals.head(top).index]

    def cold_experts(self, top: int = 5) -> list[int]:
        totals = self.expert_usage().sum().sort_values(ascending=False, kind="stable")
        return [int(expert) for expert in totals.tail(top).index]

    # --- the pattern of a token ---

    def access_pattern(self, token: int | None = None) -> pd.DataFrame:
        """The weights that a token reads, in order, with their places in the file. Without
        `token`: the first token of the answer that was evaluated.

        >>> analyzer.access_pattern().tensor_name.head(3).tolist()
        ['token_embd.weight', 'blk.0.attn_norm.weight', 'blk.0.attn_q.weight']
        """
        if token is None:
            generated = self.df.token_id[self.df.phase == "generate"]
            if not len(generated):
                raise NoData(f"{self.session.path.name} has no generated token that was evaluated.")
            token = int(generated.min())
        reads = self.df[(self.df.token_id == token) & ~self.df.write]
        reads = reads[["tensor_name", "size_bytes", "timestamp_ns"]].astype({"tensor_name": object})
        places = self.session.weights()[
            ["tensor_name", "file_offset", "layer_id", "component_type"]
        ]
        reads = reads.assign(order=range(len(reads))).merge(places, on="tensor_name")
        return (
            reads.sort_values("order", kind="stable").drop(columns="order").reset_index(drop=True)
        )

    def is_deterministic(self) -> bool:
        """Whether all tokens of the answer access the same tensors (and experts) in the same
        order."""
        generated = self.df[self.df.phase == "generate"]
        codes = generated.tensor_name.cat.codes
        orders = {tuple(of) for _, of in codes.groupby(generated.token_id)}
        return len(orders) <= 1

    def save_pattern(self, path: str | os.PathLike[str], token: int | None = None) -> int:
        """Writes the pattern of a token as JSON (docs/access-pattern.md); returns its length."""
        entries = [
            {
                "tensor_name": row.tensor_name,
                "file_offset": int(row.file_offset),
                "size_bytes": int(row.size_bytes),
                "layer_id": int(row.layer_id),
                "component": row.component_type,
            }
            for row in self.access_pattern(token).itertuples()
        ]
        Path(path).write_text(json.dumps({"per_token_pattern": entries}, indent=2) + "\n")
        return len(entries)

    # --- validation ---

    def validate(self) -> list[str]:
        """What is wrong with the session; empty: nothing was found.

        >>> analyzer.validate()
        []
        """
        wrong, frame = [], self.df
        tokens = frame.token_id.unique()
        if list(tokens) != list(range(tokens[0], tokens[0] + len(tokens))):
            wrong.append("tokens are missing, or not in order")
        # A cancelled step ends before its last layer.
        complete = not self.session.steps(["aborted"], self._steps).aborted.any()
        missing = set(range(self.num_layers)) - set(frame.layer_id.dropna().unique())
        if missing and complete:
            wrong.append(f"no accesses in the layers {sorted(missing)}")
        sizes = self.session.table("model").set_index("model_file").size_bytes
        in_file = frame[frame.file_offset.notna()]
        end = in_file.file_offset + in_file.file_bytes
        outside = int((end.to_numpy() > in_file.model_file.map(sizes).to_numpy(np.float64)).sum())
        if outside:
            wrong.append(f"{outside:,} accesses are outside the model file")
        # An encoder evaluates the tokens of the prompt, too, with other accesses.
        alike = complete and not (frame.phase == "encode").any()
        expected = self.num_layers * self.ops_per_layer * self.num_tokens
        if alike and not 0.9 * expected < len(frame) < 1.1 * expected:
            wrong.append(f"{len(frame):,} accesses instead of about {expected:,.0f}")
        return wrong

    # --- files ---

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes `trace.parquet` (`df`), `gguf_structure.csv`, `access_pattern.json` and every
        figure; returns the files. Parquet needs pyarrow."""
        to = Path(folder)
        to.mkdir(parents=True, exist_ok=True)
        self.df.to_parquet(to / "trace.parquet", index=False)
        self.session.weights().to_csv(to / "gguf_structure.csv", index=False)
        written = [to / "trace.parquet", to / "gguf_structure.csv"]
        try:
            self.save_pattern(to / "access_pattern.json")
            written.append(to / "access_pattern.json")
        except NoData:
            pass
        return written + figures.save_all(self.session, to)
