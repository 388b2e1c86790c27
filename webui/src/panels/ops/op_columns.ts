// The columns of the op table.
import { exactBytes, exactNs, formatBytes, formatNs, formatShape } from '../../format';
import type { Column } from '../../grid/vgrid';
import type { Op } from '../../net/types';

const duration = (op: Op): number => op.end_ns - op.begin_ns;

const sourceNames = (op: Op): string => op.sources.map((source) => source.tensor).join(', ');

function sourceLines(op: Op): string {
  return op.sources
    .map((s) => `${s.tensor}  ${s.type} ${formatShape(s.shape)}  ${s.kind}, ${s.source}`)
    .join('\n');
}

// `ops`: all ops of the step. The bars are relative to the longest one.
export function opColumns(ops: readonly Op[]): readonly Column<Op>[] {
  const longest = ops.reduce((max, op) => Math.max(max, duration(op)), 1);
  const start = ops.reduce((min, op) => Math.min(min, op.begin_ns), ops[0]?.begin_ns ?? 0);
  const what = (op: Op): string =>
    op.role === '' || op.role === op.component ? op.component : `${op.component} · ${op.role}`;
  // prettier-ignore
  return [
    { key: 'op', title: '#', hint: 'Index in execution order', width: 46, align: 'right', text: (op) => String(op.op) },
    { key: 'name', title: 'op', width: 120, mono: true, text: (op) => op.name, exact: (op) => (op.nodes > 1 ? `${op.name}, ${op.nodes} nodes fused` : op.name) },
    { key: 'tensor', title: 'output', unsortable: true, width: 112, grow: 1, mono: true, text: (op) => op.tensor },
    { key: 'layer', title: 'layer', width: 48, align: 'right', text: (op) => (op.layer === null ? '–' : String(op.layer)), exact: (op) => (op.layer === null ? 'no layer (embedding or output)' : `layer ${op.layer}`) },
    { key: 'component', title: 'component · role', unsortable: true, width: 112, text: what, tone: (op) => op.component },
    { key: 'duration', title: 'duration', width: 86, align: 'right', text: (op) => formatNs(duration(op)), exact: (op) => exactNs(duration(op)), bar: (op) => duration(op) / longest },
    { key: 'bytes', title: 'bytes', hint: 'Read and written', width: 78, align: 'right', text: (op) => formatBytes(op.bytes_read + op.bytes_written), exact: (op) => `${exactBytes(op.bytes_read)} read, ${exactBytes(op.bytes_written)} written` },
    { key: 'shape', title: 'shape', unsortable: true, width: 96, align: 'right', text: (op) => formatShape(op.shape), exact: (op) => op.shape.join(' × ') },
    { key: 'type', title: 'type', unsortable: true, width: 48, text: (op) => op.type },
    { key: 'begin', title: 'begin', hint: 'Start, relative to the step', unsortable: true, width: 74, align: 'right', text: (op) => formatNs(op.begin_ns - start), exact: (op) => `${exactNs(op.begin_ns)} after the start of the session` },
    { key: 'device', title: 'device', unsortable: true, width: 54, text: (op) => op.device },
    { key: 'sources', title: 'sources', unsortable: true, width: 108, grow: 2, mono: true, text: sourceNames, exact: sourceLines },
  ];
}
