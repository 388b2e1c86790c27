// The columns of the op table.
import { exactBytes, exactNs, formatBytes, formatNs, formatShape } from '../../format';
import type { Column } from '../../grid/vgrid';
import { durationOf, shapeOf, type Op } from '../../net/types';

const sourceNames = (op: Op): string => op.sources.map((source) => source.tensor_name).join(', ');

function sourceLines(op: Op): string {
  return op.sources
    .map(
      (s) =>
        `${s.tensor_name}  ${s.tensor_type} ${formatShape(shapeOf(s))}  ${s.tensor_kind}, ${s.memory_source}`,
    )
    .join('\n');
}

// `ops`: all ops of the step. The bars are relative to the longest one.
export function opColumns(ops: readonly Op[]): readonly Column<Op>[] {
  const longest = ops.reduce((max, op) => Math.max(max, durationOf(op)), 1);
  const start = ops.reduce((min, op) => Math.min(min, op.timestamp_ns), ops[0]?.timestamp_ns ?? 0);
  const what = (op: Op): string =>
    op.role === '' || op.role === op.component ? op.component : `${op.component} · ${op.role}`;
  // prettier-ignore
  return [
    { key: 'op', title: '#', hint: 'Index in execution order', width: 46, align: 'right', text: (op) => String(op.op) },
    { key: 'name', title: 'op', width: 120, mono: true, text: (op) => op.operation_type, exact: (op) => (op.nodes > 1 ? `${op.operation_type}, ${op.nodes} nodes fused` : op.operation_type) },
    { key: 'tensor', title: 'output', unsortable: true, width: 112, grow: 1, mono: true, text: (op) => op.tensor_name },
    { key: 'layer', title: 'layer', width: 48, align: 'right', text: (op) => (op.op_layer_id === null ? '–' : String(op.op_layer_id)), exact: (op) => (op.op_layer_id === null ? 'no layer (embedding or output)' : `layer ${op.op_layer_id}`) },
    { key: 'component', title: 'component · role', unsortable: true, width: 112, text: what, tone: (op) => op.component },
    { key: 'duration', title: 'duration', width: 86, align: 'right', text: (op) => formatNs(durationOf(op)), exact: (op) => exactNs(durationOf(op)), bar: (op) => durationOf(op) / longest },
    { key: 'bytes', title: 'bytes', hint: 'Read and written', width: 78, align: 'right', text: (op) => formatBytes(op.bytes_read + op.bytes_written), exact: (op) => `${exactBytes(op.bytes_read)} read, ${exactBytes(op.bytes_written)} written` },
    { key: 'shape', title: 'shape', unsortable: true, width: 96, align: 'right', text: (op) => formatShape(shapeOf(op)), exact: (op) => shapeOf(op).join(' × ') },
    { key: 'type', title: 'type', unsortable: true, width: 48, text: (op) => op.tensor_type },
    { key: 'begin', title: 'begin', hint: 'Start, relative to the step', unsortable: true, width: 74, align: 'right', text: (op) => formatNs(op.timestamp_ns - start), exact: (op) => `${exactNs(op.timestamp_ns)} after the start of the session` },
    { key: 'device', title: 'device', unsortable: true, width: 54, text: (op) => op.device },
    { key: 'sources', title: 'sources', unsortable: true, width: 108, grow: 2, mono: true, text: sourceNames, exact: sourceLines },
  ];
}
