"""What is the same in all steps: a column per property, for the accesses or ops of all templates
one after another. The rows of steps take their values from here."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..frames import Coded, Column, Missing
from . import names
from .accesses import DerivedTemplate
from .blob import NONE
from .byte_rules import EXPERTS
from .footprint import span_of
from .graph import ATTENTION_ROLES


class Lookup:
    def __init__(self) -> None:
        self.base: dict[int, int] = {}  # template: index of its first row
        self.columns: dict[str, Column] = {}

    def taken(self, at: NDArray[np.int64], wanted: set[str]) -> dict[str, Column]:
        return {
            name: column[at] if isinstance(column, np.ndarray) else column.take(at)
            for name, column in self.columns.items()
            if name in wanted
        }


def _numbers(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)


def _layers(values: Iterable[int]) -> Missing:
    layers = _numbers(values)
    return Missing(layers, layers == NONE)


class AccessLookup(Lookup):
    def __init__(self, templates: list[DerivedTemplate], model_heads: tuple[int, int]) -> None:
        super().__init__()
        accesses, tensors, ops, op_names, categories, heads = [], [], [], [], [], []
        for derived in templates:
            graph = derived.graph
            self.base[graph.id] = len(accesses)
            names_of_ops = [graph.op_name(op) for op in graph.ops]
            categories_of_tensors = derived.categories
            layers = names.heads_of_layers(graph)
            for access in derived.accesses:
                tensor = graph.tensors[access.tensor]
                accesses.append(access)
                tensors.append(tensor)
                ops.append(graph.ops[access.op])
                op_names.append(names_of_ops[access.op])
                categories.append(categories_of_tensors[access.tensor])
                heads.append(names.head_geometry(tensor, layers, model_heads))
        self.heads = heads
        self.stride = _numbers(access.stride for access in accesses)
        no_file = np.array([access.file_length == 0 for access in accesses], bool)
        self.columns = {
            "op": _numbers(access.op for access in accesses),
            "operation_type": Coded.of(op_names),
            "op_layer_id": _layers(op.layer for op in ops),
            "device": Coded.of(op.device for op in ops),
            "write": np.array([access.write for access in accesses], bool),
            "tensor": _numbers(access.tensor for access in accesses),
            "tensor_name": Coded.of(tensor.name for tensor in tensors),
            "tensor_type": Coded.of(tensor.type for tensor in tensors),
            "tensor_kind": Coded.of(tensor.kind for tensor in tensors),
            "tensor_bytes": _numbers(span_of(tensor) for tensor in tensors),
            "layer_id": _layers(tensor.layer for tensor in tensors),
            "component": Coded.of(tensor.component for tensor in tensors),
            "role": Coded.of(tensor.role for tensor in tensors),
            "category": Coded.of(categories),
            "memory_source": Coded.of(tensor.source for tensor in tensors),
            "model_file": Missing(_numbers(access.file for access in accesses), no_file),
            "tensor_file_offset": Missing(_numbers(a.file_offset for a in accesses), no_file),
            "extent": Coded.of(access.extent for access in accesses),
            "unit_bytes": _numbers(access.unit for access in accesses),
            "qkv_type": Coded.of(t.role if t.role in ATTENTION_ROLES else None for t in tensors),
            "attention_heads": Missing.of(of.count or None for of in heads),
        }
        # The names of all experts. Tensors of several templates, and several tensors of one, may
        # have the same name.
        codes: dict[str, int] = {}
        begins: dict[tuple[str, int], int] = {}
        all_codes: list[int] = []
        first = np.full(len(accesses), NONE, np.int64)
        for i, (access, tensor) in enumerate(zip(accesses, tensors)):
            if access.extent != EXPERTS:
                continue
            key = (tensor.name, tensor.ne[2])
            if key not in begins:
                begins[key] = len(all_codes)
                for expert in range(tensor.ne[2]):
                    name = names.expert_name(tensor.name, expert)
                    all_codes.append(codes.setdefault(name, len(codes)))
            first[i] = begins[key]
        self._expert_names, self._expert_codes = list(codes), _numbers(all_codes)
        self._first_expert = first

    def expert_names_of(self, at: NDArray[np.int64], experts: NDArray[np.int64]) -> Coded:
        codes = np.full(len(at), -1, np.int64)
        of = np.flatnonzero(experts != NONE)
        codes[of] = self._expert_codes[self._first_expert[at[of]] + experts[of]]
        return Coded(codes, self._expert_names)


class OpLookup(Lookup):
    def __init__(self, templates: list[DerivedTemplate], llamafile: bool | None) -> None:
        super().__init__()
        graphs, ops, outputs = [], [], []
        for derived in templates:
            self.base[derived.graph.id] = len(ops)
            ops += derived.graph.ops
            graphs += [derived.graph] * len(derived.graph.ops)
        outputs = [graph.nodes[op.last].output for graph, op in zip(graphs, ops)]
        tensors = [graph.tensors[output] for graph, output in zip(graphs, outputs)]
        purposes = [names.purpose_of(graph, op) for graph, op in zip(graphs, ops)]
        self.columns = {
            "operation_type": Coded.of(graph.op_name(op) for graph, op in zip(graphs, ops)),
            "op_layer_id": _layers(op.layer for op in ops),
            "device": Coded.of(op.device for op in ops),
            "kernel": Coded.of(names.kernel_of(g, op, llamafile) for g, op in zip(graphs, ops)),
            "nodes": _numbers(op.nodes for op in ops),
            "tensor": _numbers(outputs),
            "tensor_name": Coded.of(tensor.name for tensor in tensors),
            "tensor_type": Coded.of(tensor.type for tensor in tensors),
            **{f"ne{i}": _numbers(tensor.ne[i] for tensor in tensors) for i in range(4)},
            "component": Coded.of(component for component, _ in purposes),
            "role": Coded.of(role for _, role in purposes),
        }
