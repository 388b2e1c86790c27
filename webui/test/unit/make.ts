// Creates tokens, steps and ops for tests; `part` overrides fields.
import type { Op, StepSummary, Token } from '../../src/net/types';

export function token(index: number, part: Partial<Token> = {}): Token {
  return {
    index,
    id: 100 + index,
    position: index,
    generated: false,
    reused: false,
    sequence: null,
    draft: null,
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
    token_id: index,
    token_count: 1,
    begin_ns: 0,
    end_ns: 1000,
    duration_ns: 1000,
    first_op_ns: 0,
    threads: 1,
    ops_timed: 3,
    accesses: 6,
    bytes_read: 30,
    bytes_written: 3,
    dropped: false,
    aborted: false,
    verdict: null,
    interval_ns: null,
    cpu_ns: null,
    cpu_wait_ns: null,
    voluntary_switches: null,
    involuntary_switches: null,
    minor_faults: null,
    major_faults: null,
    disk_read_bytes: null,
    throttled_ns: null,
    frequency_khz: null,
    thermal_throttles: null,
    memory_limit_bytes: null,
    locked_bytes: null,
    resident_bytes: null,
    pressure_cpu_ns: null,
    pressure_io_ns: null,
    pressure_memory_ns: null,
    queue_ns: null,
    sample_ns: null,
    detokenize_ns: null,
    build_ns: null,
    evaluate_ns: null,
    graphs_built: null,
    mapped_bytes: 0,
    reread_factor: null,
    bytes_per_fault: null,
    layers: { ns: [10, 20, 30], bytes: [1, 2, 3] },
    ...part,
  };
}

export function op(index: number, part: Partial<Op> = {}): Op {
  return {
    step: 0,
    op: index,
    phase: 'generate',
    template: 1,
    token_id: 0,
    operation_type: 'MUL_MAT',
    op_layer_id: null,
    device: 'CPU',
    kernel: 'plain',
    threads: 1,
    nodes: 1,
    tensor: index,
    tensor_name: `t-${index}`,
    tensor_type: 'F32',
    ne0: 8,
    ne1: 1,
    ne2: 1,
    ne3: 1,
    component: 'other',
    role: '',
    timestamp_ns: 10 * index,
    duration_ns: 5,
    bytes_read: 0,
    bytes_written: 0,
    output_min: null,
    output_max: null,
    output_mean: null,
    output_std: null,
    output_nan: null,
    output_inf: null,
    sources: [],
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
