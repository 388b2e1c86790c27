"""Which op and access a page fault belongs to (docs/sql.md, "fault")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .accesses import DerivedTemplate
from .blob import NONE
from .byte_rules import EXPERTS
from .footprint import span_of
from .session_file import Step


class FaultPlaces:
    """For one template and its addresses. begin_step() before the faults of a step."""

    def __init__(self, derived: DerivedTemplate, addresses: NDArray[np.uint64]) -> None:
        self._derived = derived
        graph = derived.graph
        self._begin, self._end = [], []
        self._weights, seen = [], set()
        self._of_op: list[list[int]] = [[] for _ in graph.ops]
        for i, access in enumerate(derived.accesses):
            begin = int(addresses[access.tensor]) if access.tensor < len(addresses) else 0
            span = span_of(graph.tensors[access.tensor]) if begin else 0
            self._begin.append(begin)
            self._end.append(begin + span)
            self._of_op[access.op].append(i)
            if access.file_length and access.tensor not in seen:
                seen.add(access.tensor)
                self._weights.append(i)

    def begin_step(self, step: Step) -> None:
        self._first_op_ns = step.first_op_ns
        self._latest = np.maximum.accumulate(step.op_ends) if len(step.op_ends) else step.op_ends

    def of(self, at_ns: int, address: int) -> dict[str, object]:
        op, access = self._op_and_access(at_ns, address)
        found: dict[str, object] = {}
        graph = self._derived.graph
        if op != NONE:
            layer = graph.ops[op].layer
            found |= {
                "op": op,
                "operation_type": graph.op_name(graph.ops[op]),
                "op_layer_id": None if layer == NONE else layer,
            }
        if access == NONE:
            return found
        rule = self._derived.accesses[access]
        owner = graph.tensors[graph.root(rule.tensor)]
        found |= {
            "access": access,
            "tensor_name": owner.name,
            "layer_id": None if owner.layer == NONE else owner.layer,
            "component": owner.component,
        }
        offset = address - self._begin[access]
        if rule.extent == EXPERTS and rule.stride:
            expert = offset // rule.stride
            if expert < graph.tensors[rule.tensor].ne[2]:
                found["expert_id"] = expert
        if rule.file_length and owner.source == "disk":
            found |= {"model_file": rule.file, "file_offset": rule.file_offset + offset}
        return found

    def _op_and_access(self, at_ns: int, address: int) -> tuple[int, int]:
        ran = min(len(self._latest), len(self._of_op))
        op = access = NONE
        if ran and at_ns >= self._first_op_ns:
            at = int(np.searchsorted(self._latest, at_ns, "right"))
            if at < ran:
                op, access = at, self._access_of(at, address)
            # The end of an op is when its first thread is done: others may still work on it.
            if access == NONE and 0 < at <= ran:
                late = self._access_of(at - 1, address)
                if late != NONE:
                    return at - 1, late
        if access == NONE:
            access = next((i for i in self._weights if self._contains(i, address)), NONE)
        return op, access

    def _access_of(self, op: int, address: int) -> int:
        return next((i for i in self._of_op[op] if self._contains(i, address)), NONE)

    def _contains(self, access: int, address: int) -> bool:
        return self._begin[access] != 0 and self._begin[access] <= address < self._end[access]
