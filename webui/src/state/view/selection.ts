// The selection: one item of the open session or of its selected step. Every view marks it and the
// inspector describes it. Tensors, experts, heads, tokens and layers are the same in every step. Ops and
// nodes are indices of the selected step. The name of their output identifies them: links have it, and
// FollowedSelection finds them by it in each step.

export type Selection =
  | { readonly kind: 'op'; readonly op: number }
  // `access`: index in the template; `part`: its row (an expert, a row of a matrix)
  | { readonly kind: 'access'; readonly op: number; readonly access: number; readonly part: number }
  | { readonly kind: 'node'; readonly node: number } // of the step's graph
  // An op or node that the selected step does not have, or whose graph has not arrived.
  // `name`: of TemplateGraph.keys
  | { readonly kind: 'output'; readonly of: 'op' | 'node'; readonly name: string }
  | { readonly kind: 'tensor'; readonly name: string } // TemplateGraph.keys
  | ({ readonly kind: 'expert' } & ExpertOfLayer)
  | ({ readonly kind: 'head' } & HeadOfLayer)
  | { readonly kind: 'token'; readonly token: number }
  | { readonly kind: 'layer'; readonly layer: number };

// The form in URLs: o:ffn_out-3, a:12.30.0, n:Qcur-0~2, t:blk.3.ffn_up.weight, x:3.6, h:3.7, k:5, l:3.
// `name`: of the output of the selected op or node. If it is unknown, or looks like an index, the link
// has the index: o:12, n:7.
export function encodeSelection(selection: Selection, name: string | null = null): string {
  const isName = name !== null && OUTPUT.test(name);
  switch (selection.kind) {
    case 'op':
      return isName ? `o:${name}` : `o:${selection.op}`;
    case 'access':
      return `a:${selection.op}.${selection.access}.${selection.part}`;
    case 'node':
      return isName ? `n:${name}` : `n:${selection.node}`;
    case 'output':
      return `${selection.of === 'op' ? 'o' : 'n'}:${selection.name}`;
    case 'tensor':
      return `t:${selection.name}`;
    case 'expert':
      return `x:${selection.layer}.${selection.expert}`;
    case 'head':
      return `h:${selection.layer}.${selection.head}`;
    case 'token':
      return `k:${selection.token}`;
    case 'layer':
      return `l:${selection.layer}`;
  }
}

const OUTPUT = /^(?!\d+$).{1,200}$/s;

export function decodeSelection(text: string): Selection | null {
  const named = /^t:(.{1,200})$/s.exec(text);
  if (named?.[1] !== undefined) return { kind: 'tensor', name: named[1] };
  const output = /^([on]):(.*)$/s.exec(text);
  if (output?.[2] !== undefined && OUTPUT.test(output[2]))
    return { kind: 'output', of: output[1] === 'o' ? 'op' : 'node', name: output[2] };
  const part = /^([hx]):(\d{1,9})\.(\d{1,9})$/.exec(text);
  if (part) return partOf(part[1] === 'h' ? 'head' : 'expert', Number(part[2]), Number(part[3]));
  const match = /^([oankl]):(\d{1,9})(?:\.(\d{1,9})\.(\d{1,9}))?$/.exec(text);
  if (!match) return null;
  const [, kind, first, second, third] = match;
  const n = Number(first);
  if ((kind === 'a') !== (second !== undefined)) return null;
  switch (kind) {
    case 'o':
      return { kind: 'op', op: n };
    case 'a':
      return { kind: 'access', op: n, access: Number(second), part: Number(third) };
    case 'n':
      return { kind: 'node', node: n };
    case 'k':
      return { kind: 'token', token: n };
    default:
      return { kind: 'layer', layer: n };
  }
}

export function sameSelection(a: Selection | null, b: Selection | null): boolean {
  return a === b || (a !== null && b !== null && encodeSelection(a) === encodeSelection(b));
}

// The op of a selection; null if it has none.
export function opOf(selection: Selection | null): number | null {
  return selection?.kind === 'op' || selection?.kind === 'access' ? selection.op : null;
}

// The names of a head and of an expert are those of their rows on the server. Their numbers are of
// their layer.
export interface HeadOfLayer {
  readonly layer: number;
  readonly head: number;
}
export interface ExpertOfLayer {
  readonly layer: number;
  readonly expert: number;
}
export const headName = ({ layer, head }: HeadOfLayer): string => `blk.${layer} head ${head}`;
export const expertName = ({ layer, expert }: ExpertOfLayer): string =>
  `blk.${layer} expert ${expert}`;

const partOf = (kind: 'head' | 'expert', layer: number, number: number): Selection =>
  kind === 'head' ? { kind, layer, head: number } : { kind, layer, expert: number };

// Null: it is another name.
export function partNamed(name: string): Selection | null {
  const [, layer, kind, number] = /^blk\.(\d+) (head|expert) (\d+)$/.exec(name) ?? [];
  if (kind !== 'head' && kind !== 'expert') return null;
  return partOf(kind, Number(layer), Number(number));
}
