"""Figures of a session, made by matplotlib. Each function returns a figure; a notebook shows it,
and `figure.savefig("x.png")` writes it with 300 dots per inch.

The sums are made part by part, so a session of any size can be drawn.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from itertools import cycle
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from .errors import NoData
from .session import Session
from .trend import Trend

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as PlotlyFigure

DPI = 300
COUNT_COLOURS = "YlOrRd"
ORDER_COLOURS = "viridis"
_MOST_POINTS = 500_000  # of a scatter plot
_MOST_LABELS = 40
_PHASE_LINE = "#444444"

Value = Literal["accesses", "bytes"]


class SessionFigure(Figure):
    """A figure that a notebook shows, and that is written with 300 dots per inch."""

    def savefig(self, fname: Any, **options: Any) -> None:
        super().savefig(fname, **{"dpi": DPI, "bbox_inches": "tight", **options})

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=110)
        return picture.getvalue()


def heat_map_token_layer(session: Session, value: Value = "accesses") -> SessionFigure:
    """How often, or with how many bytes, each token accessed each layer. The tokens of a prompt
    share the bytes of their step.

    >>> heat_map_token_layer(session).axes[0].get_title()
    'Accesses by token and layer'
    """
    layers = max(int(session.info["n_layers"]), 1)
    sums = np.zeros((layers, _tokens(session)))
    for frame in _token_accesses(session, ["layer_id"]):
        inside = frame[frame.layer_id.notna()]
        at = inside.layer_id.to_numpy(np.int64)
        known = at < layers
        np.add.at(sums, (at[known], inside.token_id[known]), _weights(inside[known], value))
    figure, axes = _new(width=12, height=1.6 + min(max(layers * 0.22, 2.2), 8))
    _heat(figure, axes, session, sums, value)
    axes.set_ylabel("layer")
    axes.set_title(f"{_title(value)} by token and layer", pad=16)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure


def heat_map_token_tensor(
    session: Session, value: Value = "accesses", top: int = 40
) -> SessionFigure:
    """The same by weight: the `top` weights with the largest sums, in the order of the file."""
    places = {
        of.tensor_name: (of.model_file, of.file_offset) for of in session.weights().itertuples()
    }
    sums: dict[str, NDArray[np.float64]] = {}
    for frame in _token_accesses(session, ["tensor_name", "tensor_kind"]):
        frame = frame[frame.tensor_kind == "weight"]
        codes, names = pd.factorize(frame.tensor_name)
        part = np.zeros((len(names), _tokens(session)))
        np.add.at(part, (codes, frame.token_id), _weights(frame, value))
        for row, name in zip(part, names):
            sums[name] = sums.get(name, 0) + row
    if not sums:
        raise NoData(_no_accesses(session))
    chosen = sorted(sums, key=lambda name: -sums[name].sum())[:top]
    chosen.sort(key=lambda name: places.get(name, (-1, 0)))
    figure, axes = _new(width=12, height=1.6 + 0.2 * max(len(chosen), 8))
    _heat(figure, axes, session, np.array([sums[name] for name in chosen]), value)
    axes.set_yticks(range(len(chosen)), chosen, fontsize=7)
    axes.set_title(f"{_title(value)} by token and weight", pad=16)
    return figure


def timeline(session: Session, steps: range | None = None) -> SessionFigure:
    """Where in the model file the weights were read, over time. A long session is thinned out
    evenly to 500,000 reads; the title says so."""
    columns = ["timestamp_ns", "file_offset", "model_file", "token_id", "write"]
    kept: list[pd.DataFrame] = []
    every, seen, held = 1, 0, 0
    for frame in session.iter_accesses(columns, steps):
        frame = frame[frame.file_offset.notna() & ~frame.write]
        kept.append(frame.iloc[(-seen) % every :: every])
        seen += len(frame)
        held += len(kept[-1])
        while held > _MOST_POINTS:
            kept = [pd.concat(kept).iloc[::2]]
            every, held = every * 2, len(kept[0])
    if not seen:
        raise NoData(_no_accesses(session))
    reads = pd.concat(kept)
    sizes = session.table("model").set_index("model_file").size_bytes
    begins = (sizes.cumsum() - sizes).to_dict()  # the files of a split model one after another
    offset = reads.file_offset + reads.model_file.map(begins).fillna(0).to_numpy(float)
    figure, axes = _new(width=14, height=6)
    scale, unit = _byte_unit(float(offset.max()))
    seconds, time_unit = _time_unit(float(reads.timestamp_ns.max() - reads.timestamp_ns.min()))
    few, size = len(reads) < 20_000, 14 if len(reads) < 2_000 else 6 if len(reads) < 20_000 else 1
    points = axes.scatter(
        reads.timestamp_ns / seconds, offset / scale, c=reads.token_id, cmap=ORDER_COLOURS,
        s=size, alpha=0.8 if few else 0.5, linewidths=0, rasterized=True,
    )  # fmt: skip
    part = "" if every == 1 else f" (one of {every} reads)"
    axes.set(
        xlabel=f"time since the start of the session, {time_unit}",
        ylabel=f"file offset, {unit}",
        title=f"Reads of the model file over time{part}",
    )
    axes.margins(x=0.01)
    bar = figure.colorbar(points, ax=axes, label="token", pad=0.015)
    bar.locator = MaxNLocator(integer=True)
    bar.update_ticks()
    bar.solids.set_alpha(1)
    return figure


def hot_tensors(
    session: Session, top: int = 20, value: Value = "accesses", kind: str | None = "weight"
) -> SessionFigure:
    """The weights with the most accesses (each token of a prompt counts) or bytes. `kind`: another
    kind of tensors ("kv", "input", "intermediate"); None: all."""
    sums: dict[str, float] = {}
    kinds: dict[str, str] = {}
    for frame in _token_accesses(session, ["tensor_name", "tensor_kind"]):
        if kind is not None:
            frame = frame[frame.tensor_kind == kind]
        frame = frame.assign(weight=_weights(frame, value))
        groups = frame.groupby(["tensor_name", "tensor_kind"], observed=True).weight.sum()
        for (name, of), total in groups.items():
            sums[name] = sums.get(name, 0) + total
            kinds[name] = of
    if not sums:
        raise NoData(_no_accesses(session))
    chosen = sorted(sums, key=lambda name: (-sums[name], name))[:top][::-1]
    totals = np.array([sums[name] for name in chosen])
    scale, unit = _byte_unit(totals.max()) if value == "bytes" else (1.0, "accesses")
    figure, axes = _new(width=10, height=1.4 + 0.28 * max(len(chosen), 6))
    colours = {"weight": "#c8463c", "kv": "#2f6f9f", "input": "#8a8a8a", "intermediate": "#e0a458"}
    bars = axes.barh(chosen, totals / scale, color=[colours[kinds[name]] for name in chosen])
    form = "{:,.0f}" if value == "accesses" else "{:.3g}"
    axes.bar_label(bars, [form.format(total / scale) for total in totals], padding=3, fontsize=8)
    present = dict.fromkeys(kinds[name] for name in reversed(chosen))
    if kind is None:
        patches = [Patch(color=colours[of]) for of in present]
        axes.legend(patches, [_KIND_WORDS[of] for of in present], loc="lower right")
    axes.margins(x=0.09, y=0.01)
    axes.tick_params(axis="y", labelsize=8)
    axes.set(xlabel=unit, title=f"The {len(chosen)} {_KIND_WORDS[kind]}s with the most {value}")
    return figure


_KIND_WORDS = {
    None: "tensor",
    "weight": "weight",
    "kv": "KV cache",
    "input": "input",
    "intermediate": "intermediate result",
}


def op_kinds(session: Session) -> SessionFigure:
    """How accesses, bytes and time are divided among the kinds of ops."""
    accesses: dict[str, float] = {}
    for frame in session.iter_accesses(["operation_type"]):
        for kind, count in frame.operation_type.value_counts().items():
            accesses[kind] = accesses.get(kind, 0) + count
    if not accesses:
        raise NoData(_no_accesses(session))
    columns = ["operation_type", "duration_ns", "bytes_read", "bytes_written"]
    ops = session.ops(columns).groupby("operation_type", observed=True).sum()
    parts = {
        "accesses": pd.Series(accesses, dtype=float),
        "bytes": (ops.bytes_read + ops.bytes_written).astype(float),
        "time": ops.duration_ns,
    }
    figure, _ = _new(width=13, height=5, axes=False)
    order = sorted(accesses, key=lambda kind: -accesses[kind])
    colour = dict(zip(order, cycle(colormaps["tab20"].colors)))
    for i, (name, part) in enumerate(parts.items()):
        axes = figure.add_subplot(1, 3, i + 1)
        part = part[part > 0].sort_values(ascending=False)
        large = part[part >= 0.035 * part.sum()]
        rest = part.sum() - large.sum()
        labels, sizes = [str(kind) for kind in large.index], list(large)
        colours = [colour.get(kind, "#d9d9d9") for kind in large.index]
        if rest > 0:
            others = len(part) - len(large)
            labels.append(str(part.index[-1]) if others == 1 else f"{others} others")
            sizes.append(rest)
            colours.append("#d9d9d9")
        axes.pie(
            sizes, labels=labels, colors=colours, pctdistance=0.8,
            autopct=lambda share: f"{share:.1f} %" if share >= 3 else "",
            startangle=90, counterclock=False, textprops={"fontsize": 8},
            wedgeprops={"linewidth": 0.6, "edgecolor": "white"},
        )  # fmt: skip
        axes.set_title(f"share of the {name}")
    return figure


def expert_token(session: Session, layer: int | None = None) -> SessionFigure:
    """Which experts each token used: in how many layers, or in one layer with which rank."""
    choices = session.experts()
    choices = choices[choices.token_id.notna()]
    if layer is not None:
        choices = choices[choices.layer_id == layer]
    if not len(choices):
        raise NoData(
            f"{session.path.name} has no choices of experts"
            + (f" in layer {layer}." if layer is not None else ": the model has none.")
        )
    experts = max(int(session.info["n_experts"]), int(choices.expert_id.max()) + 1)
    counts = np.zeros((experts, _tokens(session)))
    np.add.at(counts, (choices.expert_id.to_numpy(), choices.token_id.to_numpy(np.int64)), 1)
    figure, axes = _new(width=12, height=1.8 + min(max(0.24 * experts, 2), 9))
    image = _image(figure, axes, session, counts, ORDER_COLOURS)
    where = "number of layers" if layer is None else f"chosen in layer {layer}"
    bar = figure.colorbar(image, ax=axes, label=where, pad=0.015)
    bar.locator = MaxNLocator(integer=True)
    bar.update_ticks()
    axes.set_ylabel("expert")
    axes.set_title("Experts by token" + ("" if layer is None else f", layer {layer}"), pad=16)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=min(experts, 24)))
    return figure


def heads(session: Session, value: Value = "accesses") -> SessionFigure:
    """Reads of the parts of the Q, K, V and O weights that belong to each attention head."""
    sums: dict[tuple[str, int], float] = {}
    columns = ["qkv_type", "attention_head", "size_bytes", "token_count"]
    for frame in session.iter_accesses([*columns, "token_id"], per_token=True, per_head=True):
        frame = frame[frame.attention_head.notna()]
        frame = frame.assign(weight=_weights(frame, value))
        groups = frame.groupby(["qkv_type", "attention_head"], observed=True).weight.sum()
        for (role, head), total in groups.items():
            sums[role, int(head)] = sums.get((role, int(head)), 0) + total
    if not sums:
        raise NoData(
            f"{session.path.name} has no weights whose bytes belong to single attention heads: the "
            "model has no attention, or its blocks span several heads (docs/byte-rules.md)."
        )
    roles = [role for role in ("Q", "K", "V", "O") if any(of == role for of, _ in sums)]
    count = max(head for _, head in sums) + 1
    scale, unit = _byte_unit(max(sums.values())) if value == "bytes" else (1.0, "accesses")
    figure, axes = _new(width=max(7, 2 + 0.5 * count), height=4.5)
    width = 0.8 / len(roles)
    colours = ("#440154", "#31688e", "#35b779", "#fde725")
    for i, role in enumerate(roles):
        totals = [sums.get((role, head), 0) / scale for head in range(count)]
        at = np.arange(count) - 0.4 + width * (i + 0.5)
        axes.bar(at, totals, width, label=role, color=colours[i])
    axes.set(xlabel="head", ylabel=unit, title=f"{_title(value)} by attention head")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(ncols=len(roles), loc="upper left", bbox_to_anchor=(0, -0.12), frameon=False)
    return figure


def trend(trend: Trend, figure: str, group: int = 0) -> SessionFigure:
    """A figure of a set over days, or from session to session: medians with their 95 % intervals,
    and, if the trend is significant, the slope."""
    of_group = trend.points[trend.points.group == group]
    points = of_group[(of_group.figure == figure) & of_group["median"].notna()]
    if points.empty:
        names = ", ".join(dict.fromkeys(of_group[of_group["median"].notna()].figure))
        raise NoData(f"No session has the figure {figure!r}; there are: {names}.")
    test = trend.figures[(trend.figures.group == group) & (trend.figures.figure == figure)].iloc[0]
    by_day = trend.by == "day"
    # Of sessions, the slope counts places; those without the figure have none.
    at = points["at"].dt.tz_localize(None) if by_day else pd.Series(range(len(points)))
    scale, unit = _unit(test.unit, float(points["median"].max()))
    middle = points["median"].to_numpy() / scale
    drawn, axes = _new(width=9, height=4.5)
    below, above = points.low.to_numpy() / scale, points.high.to_numpy() / scale
    known = ~np.isnan(below) & ~np.isnan(above)
    axes.vlines(at.to_numpy()[known], below[known], above[known], color="#9ecae1", linewidth=4)
    axes.plot(at.to_numpy(), middle, "o", color="#08306b", markersize=5)
    if test.significant:
        places = (
            (at - at.iloc[0]).dt.days.to_numpy() if by_day else np.arange(len(points))
        ) * test.slope / scale
        axes.plot(at.to_numpy(), places + np.median(middle - places), color="#d62728", linewidth=1)
    axes.set(xlabel=trend.by, ylabel=unit)
    axes.set_title(test.sentence, fontsize=9, loc="left", wrap=True)
    if by_day:
        drawn.autofmt_xdate()
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(y=0.15)
    return drawn


def _unit(unit: str, largest: float) -> tuple[float, str]:
    if unit == "ns":
        return _time_unit(largest)
    if unit == "bytes":
        return _byte_unit(largest)
    return (0.01, "%") if unit == "share" else (1.0, unit)


# --- plotly ---


def interactive_timeline(session: Session, steps: range | None = None) -> PlotlyFigure:
    """timeline() with zoom and hover texts. Needs plotly."""
    express = _plotly()
    columns = [
        "timestamp_ns",
        "file_offset",
        "token_id",
        "tensor_name",
        "layer_id",
        "operation_type",
    ]
    reads = session.accesses([*columns, "write"], steps, max_rows=_MOST_POINTS)
    reads = reads[reads.file_offset.notna() & ~reads.write]
    reads = reads.assign(
        milliseconds=reads.timestamp_ns / 1e6, mebibytes=reads.file_offset / 2**20
    )
    reads = reads.astype({"tensor_name": str, "operation_type": str, "layer_id": "float64"})
    return express.scatter(
        reads, x="milliseconds", y="mebibytes", color="token_id", color_continuous_scale=ORDER_COLOURS,
        hover_data=["tensor_name", "layer_id", "operation_type"],
        labels={"milliseconds": "time, ms", "mebibytes": "file offset, MiB", "token_id": "token"},
        title="Reads of the model file over time",
    )  # fmt: skip


def interactive_heat_map(session: Session) -> PlotlyFigure:
    """heat_map_token_layer() with zoom and hover texts. Needs plotly."""
    express = _plotly()
    layers = max(int(session.info["n_layers"]), 1)
    sums = np.zeros((layers, _tokens(session)))
    for frame in _token_accesses(session, ["layer_id"]):
        inside = frame[frame.layer_id.notna() & (frame.layer_id < layers)]
        np.add.at(sums, (inside.layer_id.to_numpy(np.int64), inside.token_id), 1)
    return express.imshow(
        sums, origin="lower", aspect="auto", color_continuous_scale=COUNT_COLOURS,
        labels={"x": "token", "y": "layer", "color": "accesses"},
        title="Accesses by token and layer",
    )  # fmt: skip


def _plotly() -> Any:
    try:
        import plotly.express
    except ImportError as error:
        raise ImportError("Interactive figures need plotly: pip install plotly") from error
    return plotly.express


# --- all ---

ALL: dict[str, Callable[[Session], SessionFigure]] = {
    "heatmap_token_layer": heat_map_token_layer,
    "heatmap_token_tensor": heat_map_token_tensor,
    "timeline_offset": timeline,
    "hot_tensors": hot_tensors,
    "operation_types": op_kinds,
    "expert_token": expert_token,
    "attention_heads": heads,
}


def save_all(session: Session, folder: str | PathLike[str], kind: str = "png") -> list[Path]:
    """Writes every figure that the session has data for; returns the files."""
    written = []
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, draw in ALL.items():
        try:
            figure = draw(session)
        except NoData:
            continue
        written.append(Path(folder) / f"{name}.{kind}")
        figure.savefig(written[-1])
    return written


# --- parts of figures ---


def _new(width: float, height: float, *, axes: bool = True) -> tuple[SessionFigure, Axes]:
    figure = SessionFigure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot() if axes else None


def _tokens(session: Session) -> int:
    return max(int(session.info["tokens"]), 1)


def _token_accesses(session: Session, columns: Iterable[str]) -> Iterable[pd.DataFrame]:
    needed = dict.fromkeys(["token_id", "token_count", "size_bytes", *columns])
    for frame in session.iter_accesses(list(needed), per_token=True):
        yield frame[frame.token_id < _tokens(session)]


def _weights(frame: pd.DataFrame, value: Value) -> NDArray[np.float64]:
    if value == "accesses":
        return np.ones(len(frame))
    if value == "bytes":
        return (frame.size_bytes / frame.token_count).to_numpy(np.float64)
    raise ValueError(f"value is 'accesses' or 'bytes', not {value!r}")


def _title(value: Value) -> str:
    return "Accesses" if value == "accesses" else "Bytes touched"


def _heat(
    figure: SessionFigure, axes: Axes, session: Session, sums: NDArray[np.float64], value: Value
) -> None:
    if not sums.any():
        raise NoData(_no_accesses(session))
    scale, unit = _byte_unit(sums.max()) if value == "bytes" else (1.0, "accesses")
    image = _image(figure, axes, session, sums / scale, COUNT_COLOURS)
    bar = figure.colorbar(image, ax=axes, label=unit, pad=0.015)
    if value == "accesses":
        bar.locator = MaxNLocator(integer=True)
        bar.update_ticks()


def _image(
    figure: SessionFigure, axes: Axes, session: Session, values: NDArray[np.float64], colours: str
):
    """A heat map with the tokens as its x axis. A line divides the prompt from the answer. The
    last token is left out if no step evaluated it."""
    tokens = session.tokens()
    evaluated = int(session.steps(["token_id", "token_count"]).sum(axis=1).max())
    values = values[:, : max(1, min(evaluated, values.shape[1]))]
    image = axes.imshow(
        values, aspect="auto", origin="lower", cmap=colours, vmin=0, interpolation="nearest"
    )
    shown = tokens.iloc[: values.shape[1]]
    if len(shown) <= _MOST_LABELS:
        labels = [f"{_visible(text)}  {i}" for i, text in enumerate(shown.text)]
        axes.set_xticks(range(len(shown)), labels, rotation=90, fontsize=7)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    prompt = int((~shown.generated).sum())
    if 0 < prompt < len(shown):
        axes.axvline(prompt - 0.5, color=_PHASE_LINE, linewidth=1, linestyle="--")
        axes.annotate(
            "answer", (prompt - 0.5, 1), xycoords=("data", "axes fraction"), xytext=(4, 3),
            textcoords="offset points", fontsize=8, color=_PHASE_LINE, annotation_clip=False,
        )  # fmt: skip
    axes.set_xlabel("token")
    return image


def _visible(text: str) -> str:
    """A token as a label: spaces and line feeds visible, no characters without a glyph."""
    shown = text.replace("\n", "⏎").replace(" ", "␣") if text.isspace() else text.strip()
    shown = "".join(c if c.isprintable() and ord(c) < 0x2100 else "·" for c in shown)
    return (shown if len(shown) <= 12 else shown[:11] + "…").replace("$", r"\$")


def _no_accesses(session: Session) -> str:
    return (
        f"{session.path.name} has no accesses: it was recorded with the level "
        f"{session.info['level']}. Record with --level detailed."
    )


def _byte_unit(largest: float) -> tuple[float, str]:
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if largest >= 1024**power:
            return float(1024**power), unit
    return 1.0, "bytes"


def _time_unit(nanoseconds: float) -> tuple[float, str]:
    return (1e9, "s") if nanoseconds >= 2e9 else (1e6, "ms")
