// Which ops of a recorded graph a breakpoint names: by kind, layer and output. The grammar is that of
// tracer/debug/breakpoint.h. Whether a run stops there also depends on what only the run knows: its
// tokens, steps, experts and values. Pure functions.

export interface PlacedOp {
  readonly output: string; // name
  readonly op: string; // kind; of a fused op its parts: RMS_NORM+MUL
  readonly layer: number | null;
}

// A breakpoint without a kind, a layer and a pattern (`if nan`) names no op.
export function opsNamedBy(text: string): (op: PlacedOp) => boolean {
  const words = text.split(/\s+/).filter(Boolean);
  const tests: ((op: PlacedOp) => boolean)[] = [];
  while (words.length > 0) {
    const word = words.shift() ?? '';
    if (word === 'if') break;
    if (word === 'watch' || word === 'before') continue;
    if (!PARTS.includes(word)) tests.push(named(word));
    else {
      const value = words.shift() ?? '';
      if (word === 'op') tests.push(({ op }) => kindsOf(op).includes(value.toUpperCase()));
      if (word === 'layer') tests.push(({ layer }) => layer !== null && isWithin(value, layer));
    }
  }
  return (op) => tests.length > 0 && tests.every((test) => test(op));
}

const PARTS: readonly string[] = ['op', 'layer', 'token', 'step', 'expert'];

// As breakpoints name them: the function of a GLU(SWIGLU) is the op.
const kindsOf = (op: string): readonly string[] =>
  op.split('+').map((part) => /\((.+)\)/.exec(part)?.[1] ?? part);

// N, N-M or N-
function isWithin(range: string, layer: number): boolean {
  const [, first, to, last = ''] = /^(\d+)(-?)(\d*)$/.exec(range) ?? [];
  if (first === undefined) return false;
  const end = to === '' ? first : last;
  return layer >= Number(first) && (end === '' || layer <= Number(end));
}

function named(pattern: string): (op: PlacedOp) => boolean {
  try {
    const expression = new RegExp(pattern);
    return ({ output }) => expression.test(output);
  } catch {
    return () => false; // the server rejects it
  }
}
