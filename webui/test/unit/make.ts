// Creates tokens, steps and ops for tests; `part` overrides fields.
import type { Op, StepSummary, Token } from '../../src/net/types';

export function token(index: number, part: Partial<Token> = {}): Token {
  return {
    index,
    id: 100 + index,
    position: index,
    generated: false,
    reused: false,
    text: `t${index}`,
    ...part,
  };
}

export function step(index: number, part: Partial<StepSummary> = {}): StepSummary {
  return {
    step: index,
    phase: 'generate',
    timing: 'fast',
    template: 1,
    begin_ns: 0,
    end_ns: 1000,
    first_token: index,
    n_tokens: 1,
    ops: 3,
    accesses: 6,
    bytes_read: 30,
    bytes_written: 3,
    dropped: false,
    aborted: false,
    layers: { ns: [10, 20, 30], bytes: [1, 2, 3] },
    ...part,
  };
}

export function op(index: number, part: Partial<Op> = {}): Op {
  return {
    op: index,
    name: 'MUL_MAT',
    tensor: `t-${index}`,
    type: 'F32',
    shape: [8, 1, 1, 1],
    layer: null,
    component: '',
    role: '',
    device: 'CPU',
    begin_ns: 10 * index,
    end_ns: 10 * index + 5,
    nodes: 1,
    bytes_read: 0,
    bytes_written: 0,
    sources: [],
    stats: null,
    ...part,
  };
}

// Numbers in [0, 1) that depend on the seed only (mulberry32).
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
