"""What is derived from the tensors and names of a template: categories, heads, purposes of ops."""

from __future__ import annotations

from dataclasses import dataclass

from .blob import NONE
from .graph import Op, Template, Tensor

_MAX_HEADS = 65_536
LayerHeads = dict[int, tuple[int, int]]  # layer: heads of queries, of keys and values


# --- categories (docs/glossary.md) ---


def _category_of_leaf(root: Tensor) -> str | None:
    if root.kind in ("kv", "input"):
        return "infrastructure"
    if root.kind != "weight":
        return None
    if root.layer != NONE:
        return "layer"
    if root.component == "embedding" or root.name.startswith("token_embd"):
        return "embedding"
    if root.component == "output" or "output" in root.name:
        return "output"
    return "infrastructure"


def _category_by_name(tensor: Tensor) -> str | None:
    if tensor.layer != NONE:
        return "layer"
    if tensor.component == "embedding":
        return "embedding"
    if tensor.component == "output" or tensor.name.startswith("result_"):
        return "output"
    return None


def categories_of(graph: Template) -> list[str]:
    layers = [NONE] * len(graph.nodes)
    with_layer = [op for op in graph.ops if op.layer != NONE]
    for op in with_layer:
        layers[op.first : op.last + 1] = [op.layer] * op.nodes
    first = min((op.first for op in with_layer), default=NONE)
    last = max((op.last for op in with_layer), default=0)

    categories, shared = [], []
    for i, tensor in enumerate(graph.tensors):
        root = graph.tensors[graph.root(i)]
        category = _category_of_leaf(root) or _category_by_name(tensor) or "infrastructure"
        categories.append(category)
        shared.append(
            category == "infrastructure"
            and root.kind != "intermediate"
            and root.input != "embeddings"
        )
    for n, node in enumerate(graph.nodes):
        i = node.output
        root = graph.root(i)
        if _category_of_leaf(graph.tensors[root]) or _category_by_name(graph.tensors[i]):
            continue
        if layers[n] == NONE and all(s == NONE or shared[s] for s in node.sources):
            shared[i] = True
        elif layers[n] != NONE:
            categories[i] = "layer"
        elif root != i:
            categories[i] = categories[root]
        elif first == NONE:
            categories[i] = "infrastructure"
        else:
            categories[i] = "embedding" if n < first else "output" if n > last else "layer"
    return categories


# --- heads (docs/byte-rules.md, "Heads") ---


@dataclass(frozen=True, slots=True)
class HeadGeometry:
    count: int = 0  # 0: not divided
    size: int = 0  # bytes of a head: rows; by_columns: in each row
    by_columns: bool = False


def heads_of_layers(graph: Template) -> LayerHeads:
    layers: LayerHeads = {}
    for op in graph.ops:
        node = graph.nodes[op.first]
        if op.layer == NONE or len(node.sources) < 2 or NONE in node.sources[:2]:
            continue
        fused = node.op == "FLASH_ATTN_EXT"
        if not fused and not (
            node.op == "MUL_MAT" and graph.tensors[node.output].name.startswith("kq-")
        ):
            continue
        a, b = (_heads(graph.tensors[source]) for source in node.sources[:2])
        q, kv = (a, b) if fused else (b, a)
        known = layers.get(op.layer, (0, 0))
        layers[op.layer] = (max(known[0], q), max(known[1], kv))
    return layers


def _heads(tensor: Tensor) -> int:
    heads, groups = tensor.ne[2:]
    if heads <= 0 or groups <= 0 or heads * groups > _MAX_HEADS:
        return 0
    return heads * groups


def head_geometry(weight: Tensor, layers: LayerHeads, model: tuple[int, int]) -> HeadGeometry:
    counts = layers.get(weight.layer, (0, 0)) if layers else model
    heads = {"Q": counts[0], "O": counts[0], "K": counts[1], "V": counts[1]}.get(weight.role, 0)
    name = weight.name
    by_all = weight.ne[1] == 1 or any(part in name for part in ("_a.", "_a_mqa", "norm", "indexer"))
    if weight.kind != "weight" or heads == 0 or by_all:
        return HeadGeometry()
    if weight.ne[2] > 1:  # one slice per head
        return HeadGeometry(weight.ne[2], weight.nb[2])
    if weight.role != "O":
        if weight.ne[1] % heads:
            return HeadGeometry()
        return HeadGeometry(heads, weight.ne[1] // heads * weight.nb[1])
    columns = weight.ne[0] // heads
    if weight.block_elements == 0 or weight.ne[0] % heads or columns % weight.block_elements:
        return HeadGeometry()
    return HeadGeometry(heads, columns // weight.block_elements * weight.block_bytes, True)


# --- purposes of ops ---


def purpose_of(graph: Template, op: Op) -> tuple[str, str]:
    """Component and role of an op."""
    output = graph.output_of(op)
    weight = _weight_of(graph, op)
    if weight is not None and not _output_is_more_specific(output, weight):
        return weight.component, weight.role
    if output.component == "other" and output.role == "":
        name = graph.op_name(op)
        if name == "FLASH_ATTN_EXT":
            return "attention", ""
        recurrent = name.startswith(("SSM_", "RWKV_")) or name in (
            "GATED_LINEAR_ATTN",
            "GATED_DELTA_NET",
        )
        return ("ssm" if recurrent else "other"), ""
    return output.component, output.role


def _weight_of(graph: Template, op: Op) -> Tensor | None:
    inside = set()
    for node in graph.nodes[op.first : op.last + 1]:
        for source in node.sources:
            if source == NONE or source in inside:
                continue
            tensor = graph.tensors[source]
            if tensor.kind == "weight" and tensor.component != "other":
                return tensor
        inside.add(node.output)
    return None


def name_without_layer(name: str) -> str:
    """attn_norm.weight of blk.0.attn_norm.weight"""
    parts = name.split(".")
    for block in range(len(parts) - 1):
        if parts[block] == "blk" and parts[block + 1].isdigit():
            return ".".join(parts[:block] + parts[block + 2 :])
    return name


def _output_is_more_specific(output: Tensor, weight: Tensor) -> bool:
    match output.component:
        case "other":
            return False
        case "kv-cache":
            return True
        case "output":
            return weight.component in ("embedding", "output")
        case "ssm":
            return weight.component in ("attention", "ssm")
        case "attention" if weight.component == "norm":
            return not name_without_layer(weight.name).startswith("attn_norm")
        case "attention":
            return weight.component == "attention"
        case _:
            return output.component == weight.component and output.role != "residual"


# --- kernels (docs/conditions.md) ---


def kernel_rules(facts: dict[str, str]) -> bool | None:
    """Whether llamafile's kernels may run; None: unknown."""
    features = facts.get("library.features", "")
    if not features or not facts.get("host.kernel", "").endswith("x86_64"):
        return None
    return "LLAMAFILE = 1" in features and "AVX2 = 1" in features


def kernel_of(graph: Template, op: Op, llamafile: bool | None) -> str | None:
    """None: it depends on what was not recorded."""
    if op.device != "CPU":
        return "device"
    node = graph.nodes[op.first]
    if not node.op.startswith("MUL_MAT") or len(node.sources) < 2 or NONE in node.sources[:2]:
        return "plain"
    matrix, rows = (graph.tensors[source] for source in node.sources[:2])
    if "REPACK" in matrix.buffer:
        return "repacked"
    if "AMX" in matrix.buffer:
        return "amx"
    if node.op != "MUL_MAT" or llamafile is False:
        return "plain"
    by_llamafile = _by_llamafile(matrix, rows)
    if by_llamafile is False:
        return "plain"
    return "llamafile" if by_llamafile and llamafile else None


def _by_llamafile(matrix: Tensor, rows: Tensor) -> bool | None:
    if rows.ne[1] < 2:
        return False
    if matrix.type in ("Q4_0", "Q5_0", "Q8_0", "IQ4_NL"):
        return True
    if matrix.type not in ("F32", "F16", "BF16"):
        return False
    if rows.type == matrix.type and not _is_contiguous(rows):
        return False
    if matrix.ne[1] % 4 or matrix.ne[0] % 8:
        return False
    return True if matrix.ne[0] % 32 == 0 else None


def _is_contiguous(tensor: Tensor) -> bool:
    expected = tensor.block_bytes
    for i in range(4):
        if tensor.ne[i] != 1 and tensor.nb[i] != expected:
            return False
        expected *= tensor.ne[i] // max(tensor.block_elements, 1) if i == 0 else tensor.ne[i]
    return True


def expert_name(tensor: str, expert: int) -> str:
    """blk.5.expert_3.ffn_up.weight of blk.5.ffn_up_exps.weight"""
    begin = tensor.find(".", 4) + 1 if tensor.startswith("blk.") else 0
    return f"{tensor[:begin]}expert_{expert}.{tensor[begin:].replace('_exps', '', 1)}"
