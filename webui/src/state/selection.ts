// The selection: one item of the open session or of its selected step. Every view marks it and the
// inspector describes it. Tensors, experts, heads, tokens and layers are the same in every step. Ops and
// nodes are indices of the selected step; followSelection finds them again in a step with another
// graph.

export type Selection =
  | { readonly kind: 'op'; readonly op: number }
  // `access`: index in the template; `part`: its row (an expert, a row of a matrix)
  | { readonly kind: 'access'; readonly op: number; readonly access: number; readonly part: number }
  | { readonly kind: 'node'; readonly node: number } // of the step's graph
  | { readonly kind: 'tensor'; readonly name: string } // TemplateGraph.keys
  | { readonly kind: 'expert'; readonly expert: number }
  | { readonly kind: 'head'; readonly layer: number; readonly head: number }
  | { readonly kind: 'token'; readonly token: number }
  | { readonly kind: 'layer'; readonly layer: number };

// The form in URLs: o:12, a:12.30.0, n:7, t:blk.3.ffn_up.weight, x:6, h:3.7, k:5,
// l:3.
export function encodeSelection(selection: Selection): string {
  switch (selection.kind) {
    case 'op':
      return `o:${selection.op}`;
    case 'access':
      return `a:${selection.op}.${selection.access}.${selection.part}`;
    case 'node':
      return `n:${selection.node}`;
    case 'tensor':
      return `t:${selection.name}`;
    case 'expert':
      return `x:${selection.expert}`;
    case 'head':
      return `h:${selection.layer}.${selection.head}`;
    case 'token':
      return `k:${selection.token}`;
    case 'layer':
      return `l:${selection.layer}`;
  }
}

export function decodeSelection(text: string): Selection | null {
  const named = /^t:(.{1,200})$/s.exec(text);
  if (named?.[1] !== undefined) return { kind: 'tensor', name: named[1] };
  const head = /^h:(\d{1,9})\.(\d{1,9})$/.exec(text);
  if (head) return { kind: 'head', layer: Number(head[1]), head: Number(head[2]) };
  const match = /^([oanxkl]):(\d{1,9})(?:\.(\d{1,9})\.(\d{1,9}))?$/.exec(text);
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
    case 'x':
      return { kind: 'expert', expert: n };
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

// The name of a head, as in the map.
export const headName = ({ layer, head }: { readonly layer: number; readonly head: number }) =>
  `blk.${layer} head ${head}`;
