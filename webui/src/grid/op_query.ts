// Which ops of a step the table shows, and in which order.
//
// A filter is words that must all match: `mul_mat` anywhere, `op:mul_mat` in
// one field, `-layer:0` not there. Case does not matter.
import type { Op } from '../net/types';
import type { Sort } from './vgrid';

export interface Term {
  readonly field: string | null;
  readonly text: string; // lower case
  readonly not: boolean;
}

// A field in whole-word form is compared whole (layer:1 is not layer 11).
const FIELDS: Readonly<Record<string, { text: (op: Op) => string; whole?: boolean }>> = {
  op: { text: (op) => op.name },
  tensor: { text: (op) => op.tensor },
  type: { text: (op) => op.type },
  layer: { text: (op) => (op.layer === null ? 'none' : String(op.layer)), whole: true },
  component: { text: (op) => op.component },
  role: { text: (op) => op.role },
  device: { text: (op) => op.device },
  source: {
    text: (op) => op.sources.map((s) => `${s.tensor} ${s.type} ${s.kind} ${s.source}`).join(' '),
  },
};

export function parseFilter(filter: string): readonly Term[] {
  return filter
    .toLowerCase()
    .split(/\s+/)
    .map((word) => {
      const not = word.startsWith('-');
      const rest = not ? word.slice(1) : word;
      const colon = rest.indexOf(':');
      const field = rest.slice(0, Math.max(0, colon));
      // "blk:0" is no field: it is looked for as it stands.
      return field in FIELDS
        ? { field, text: rest.slice(colon + 1), not }
        : { field: null, text: rest, not };
    })
    .filter((term) => term.text !== '');
}

function matches(op: Op, term: Term): boolean {
  const field = term.field === null ? undefined : FIELDS[term.field];
  if (field) {
    const value = field.text(op).toLowerCase();
    return (field.whole ? value === term.text : value.includes(term.text)) !== term.not;
  }
  const anywhere = Object.values(FIELDS).some((f) => f.text(op).toLowerCase().includes(term.text));
  return anywhere !== term.not;
}

const KEYS: Readonly<Record<string, (op: Op) => number | string>> = {
  op: (op) => op.op,
  name: (op) => op.name,
  tensor: (op) => op.tensor,
  shape: (op) => op.shape.reduce((a, b) => a * b, 1),
  type: (op) => op.type,
  layer: (op) => op.layer ?? Infinity, // outside of any layer: after all of them
  component: (op) => op.component,
  role: (op) => op.role,
  device: (op) => op.device,
  begin: (op) => op.begin_ns,
  duration: (op) => op.end_ns - op.begin_ns,
  read: (op) => op.bytes_read,
  written: (op) => op.bytes_written,
  sources: (op) => op.sources.length,
};

// Equal ops keep the order of execution.
export function queryOps(ops: readonly Op[], terms: readonly Term[], sort: Sort): readonly Op[] {
  const kept =
    terms.length === 0 ? [...ops] : ops.filter((op) => terms.every((t) => matches(op, t)));
  const key = KEYS[sort.key] ?? KEYS.op;
  if (!key) return kept;
  const sign = sort.descending ? -1 : 1;
  return kept.sort((a, b) => {
    const x = key(a);
    const y = key(b);
    return x === y ? a.op - b.op : x < y ? -sign : sign;
  });
}

// A second click turns the order round; a new column begins with what one looks
// for: the greatest number, the first name.
export function nextSort(sort: Sort, column: string): Sort {
  if (sort.key === column) return { key: column, descending: !sort.descending };
  return { key: column, descending: ['duration', 'read', 'written', 'shape'].includes(column) };
}
