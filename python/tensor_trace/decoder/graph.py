"""A template: one distinct graph that llama.cpp evaluated (docs/trace-format.md, "Template
blob")."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..errors import DamagedSession
from .blob import NONE, BlobReader, unpacked

# The values of the enums, in the order of their numbers in the blob.
KINDS = ("intermediate", "weight", "kv", "input")
SOURCES = ("disk", "repacked", "kv", "compute", "input", "device", "buffer")
COMPONENTS = (
    "other", "embedding", "attention", "ffn", "moe", "ssm", "norm", "output", "kv-cache", "input",
)  # fmt: skip
ROLES = (
    "", "Q", "K", "V", "QKV", "O", "gate", "up", "down", "router", "norm", "bias", "conv", "state",
    "scores", "residual", "logits",
)  # fmt: skip
ATTENTION_ROLES = ROLES[1:6]  # Q to O: of `qkv_type`
INPUTS = (
    "", "token ids", "rope positions", "cache positions", "output ids", "mask", "embeddings",
    "state copy", "other",
)  # fmt: skip
SLOT_KINDS = (
    "token ids", "positions", "cache positions", "output ids", "experts", "expert scores", "rows",
    "attended cells",
)  # fmt: skip

MAX_OP_PARTS = 1024  # nodes plus sources of an op
MAX_OP_PAIRS = 64 << 20  # sum of the squares over all ops


@dataclass(slots=True)
class Tensor:
    name: str
    type: str
    block_elements: int
    block_bytes: int
    ne: tuple[int, int, int, int]  # elements, innermost dimension first
    nb: tuple[int, int, int, int]  # strides, bytes
    view_of: int  # the tensor that owns the bytes; NONE: itself
    view_offset: int
    buffer: str
    kind: str
    source: str
    component: str
    role: str
    input: str
    layer: int  # NONE: no layer
    file: int
    file_offset: int
    file_length: int  # 0: not in a file

    def limited(self, dimension: int, count: int) -> Tensor:
        """This view with at most `count` elements along a dimension."""
        ne = list(self.ne)
        ne[dimension] = min(ne[dimension], count)
        return replace(self, ne=tuple(ne))

    def one_part(self, axis: int) -> Tensor:
        """What one entry of an index list selects along a dimension: a row, a slice..."""
        return replace(self, ne=self.ne[:axis] + (1,) * (4 - axis))


@dataclass(slots=True)
class Node:
    output: int
    op: str
    sources: list[int]  # NONE: absent
    params: list[int]  # 16
    computed: bool


@dataclass(slots=True)
class Op:
    first: int  # node
    nodes: int
    device: str
    layer: int

    @property
    def last(self) -> int:
        return self.first + self.nodes - 1


@dataclass(slots=True)
class Slot:
    kind: str
    tensor: int
    read_at: int  # op; NONE: none
    layer: int


@dataclass(slots=True)
class Template:
    id: int
    fingerprint: str
    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)

    def root(self, tensor: int) -> int:
        """The tensor that owns the bytes of a tensor."""
        owner = self.tensors[tensor].view_of
        return tensor if owner == NONE else owner

    def output_of(self, op: Op) -> Tensor:
        return self.tensors[self.nodes[op.last].output]

    def op_name(self, op: Op) -> str:
        """The name in ggml; of a fused op all names, joined."""
        nodes = self.nodes[op.first : op.first + op.nodes]
        if op.nodes > 1:
            nodes = [node for node in nodes if node.computed and node.op not in _VIEWS]
        return "+".join(node.op for node in nodes)


_VIEWS = ("NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE")


def read_template(id: int, fingerprint: str, frame: bytes) -> Template:
    """Raises DamagedSession."""
    blob = BlobReader(unpacked(frame))
    graph = Template(id, fingerprint)
    graph.tensors = [_read_tensor(blob) for _ in range(blob.count(24))]
    n = len(graph.tensors)
    if any(not NONE <= tensor.view_of < n for tensor in graph.tensors):
        raise DamagedSession("a view of an unknown tensor")
    graph.nodes = [_read_node(blob, n) for _ in range(blob.count(5))]
    graph.ops = [_read_op(blob) for _ in range(blob.count(4))]
    _check_ops(graph)
    graph.slots = [_read_slot(blob, n, len(graph.ops)) for _ in range(blob.count(4))]
    blob.expect_end()
    return graph


def _read_tensor(blob: BlobReader) -> Tensor:
    return Tensor(
        name=blob.text(),
        type=blob.text(),
        block_elements=blob.varint(),
        block_bytes=blob.varint(),
        ne=(blob.zigzag(), blob.zigzag(), blob.zigzag(), blob.zigzag()),
        nb=(blob.varint(), blob.varint(), blob.varint(), blob.varint()),
        view_of=blob.ref(),
        view_offset=blob.varint(),
        buffer=blob.text(),
        kind=KINDS[blob.enum(KINDS)],
        source=SOURCES[blob.enum(SOURCES)],
        component=COMPONENTS[blob.enum(COMPONENTS)],
        role=ROLES[blob.enum(ROLES)],
        input=INPUTS[blob.enum(INPUTS)],
        layer=blob.zigzag(),
        file=blob.varint(),
        file_offset=blob.varint(),
        file_length=blob.varint(),
    )


def _read_node(blob: BlobReader, n_tensors: int) -> Node:
    output = blob.index(n_tensors)
    op = blob.text()
    sources = [blob.ref() for _ in range(blob.count(1))]
    if any(source >= n_tensors for source in sources):
        raise DamagedSession("a source that is not a tensor")
    params = [blob.zigzag() for _ in range(blob.count(1))]
    if len(params) > 16:
        raise DamagedSession("too many op parameters")
    return Node(output, op, sources, params + [0] * (16 - len(params)), blob.byte() != 0)


def _read_op(blob: BlobReader) -> Op:
    return Op(first=blob.varint(), nodes=blob.varint(), device=blob.text(), layer=blob.zigzag())


def _check_ops(graph: Template) -> None:
    end = pairs = 0
    for op in graph.ops:
        if op.nodes == 0 or op.first + op.nodes > len(graph.nodes):
            raise DamagedSession("an op without valid nodes")
        if op.first < end:
            raise DamagedSession("ops overlap or are not in order")
        end = op.first + op.nodes
        parts = op.nodes + sum(len(node.sources) for node in graph.nodes[op.first : end])
        pairs += parts * parts
        if parts > MAX_OP_PARTS or pairs > MAX_OP_PAIRS:
            raise DamagedSession("too many nodes and sources in ops")


def _read_slot(blob: BlobReader, n_tensors: int, n_ops: int) -> Slot:
    slot = Slot(
        kind=SLOT_KINDS[blob.enum(SLOT_KINDS)],
        tensor=blob.index(n_tensors),
        read_at=blob.ref(),
        layer=blob.zigzag(),
    )
    if slot.read_at >= n_ops:
        raise DamagedSession("a slot read at an unknown op")
    return slot
