// The filter of the op table.
//
// A filter is a list of words that must all match: `mul_mat` in any field, `op:mul_mat` in one
// field, `-layer:0` excludes. Matching ignores case.
import type { Op } from '../net/types';

export interface Term {
  readonly field: string | null;
  readonly text: string; // lower case
  readonly not: boolean;
}

// `whole`: the value must be equal (layer:1 does not match layer 11), else contain the text.
const FIELDS: Readonly<Record<string, { text: (op: Op) => string; whole?: boolean }>> = {
  op: { text: (op) => op.operation_type },
  n: { text: (op) => String(op.op), whole: true },
  tensor: { text: (op) => op.tensor_name },
  type: { text: (op) => op.tensor_type },
  layer: { text: (op) => (op.op_layer_id === null ? 'none' : String(op.op_layer_id)), whole: true },
  component: { text: (op) => op.component },
  role: { text: (op) => op.role },
  device: { text: (op) => op.device },
  source: {
    text: (op) =>
      op.sources
        .map((s) => `${s.tensor_name} ${s.tensor_type} ${s.tensor_kind} ${s.memory_source}`)
        .join(' '),
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
      // "blk" in "blk:0" is not a field: search the whole word.
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

// The ops that match all terms, in input order.
export function filterOps(ops: readonly Op[], terms: readonly Term[]): readonly Op[] {
  return terms.length === 0 ? ops : ops.filter((op) => terms.every((term) => matches(op, term)));
}
