// The selection: one item of the open session or of its selected step. Every view marks it and the
// inspector describes it.

export type Selection =
  | { readonly kind: 'op'; readonly op: number }
  // `access`: index in the template; `part`: its row (an expert, a row of a matrix)
  | { readonly kind: 'access'; readonly op: number; readonly access: number; readonly part: number }
  | { readonly kind: 'node'; readonly node: number } // of the step's graph
  | { readonly kind: 'tensor'; readonly tensor: number } // of the step's graph
  | { readonly kind: 'token'; readonly token: number }
  | { readonly kind: 'layer'; readonly layer: number };

// The form in URLs: o:12, a:12.30.0, n:7, t:403, k:5, l:3.
export function encodeSelection(selection: Selection): string {
  switch (selection.kind) {
    case 'op':
      return `o:${selection.op}`;
    case 'access':
      return `a:${selection.op}.${selection.access}.${selection.part}`;
    case 'node':
      return `n:${selection.node}`;
    case 'tensor':
      return `t:${selection.tensor}`;
    case 'token':
      return `k:${selection.token}`;
    case 'layer':
      return `l:${selection.layer}`;
  }
}

export function decodeSelection(text: string): Selection | null {
  const match = /^([oantkl]):(\d{1,9})(?:\.(\d{1,9})\.(\d{1,9}))?$/.exec(text);
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
    case 't':
      return { kind: 'tensor', tensor: n };
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
