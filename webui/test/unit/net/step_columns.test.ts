import { describe, expect, it } from 'vitest';
import { decodeSteps } from '../../../src/net/step_columns';
import type { StepSummary } from '../../../src/net/types';
import { step } from '../make';

const PHASES = ['prompt', 'generate'];
const TIMINGS = ['fast', 'learned', 'exact', 'none'];
const wordsOf = (name: string): readonly string[] | undefined =>
  name === 'phase' ? PHASES : name === 'timing' ? TIMINGS : name === 'verdict' ? ['clean'] : undefined; // prettier-ignore

// The bytes that the server sends for these steps (api/step_format.md).
function frame(
  steps: readonly StepSummary[],
  change: (columns: { name: string }[]) => object[] = (all) => all,
): ArrayBuffer {
  const names = Object.keys(step(0)).filter((name) => name !== 'layers');
  const layers = steps[0]?.layers.ns.length ?? 0;
  const columns = names.map((name) => {
    const words = wordsOf(name);
    const isFlag = name === 'dropped' || name === 'aborted';
    return { name, ...(words ? { words } : {}), ...(isFlag ? { flag: true } : {}) };
  });
  const numbers = names.flatMap((name) =>
    steps.map((row) => {
      const value = row[name as keyof StepSummary];
      return value === null ? NaN : typeof value === 'string' ? (wordsOf(name)?.indexOf(value) ?? 0) : Number(value); // prettier-ignore
    }),
  );
  for (const part of ['ns', 'bytes'] as const)
    for (const row of steps)
      for (let i = 0; i < layers; i += 1) numbers.push(row.layers[part][i] ?? 0);
  const text = new TextEncoder().encode(JSON.stringify({ total: 9, columns: change(columns) }));
  const bytes = new Uint8Array(32 + 8 * numbers.length + text.length);
  const head = new DataView(bytes.buffer);
  head.setUint32(0, 0x31465454, true);
  head.setUint16(4, 4, true);
  [steps.length, names.length, layers].forEach((value, i) => {
    head.setUint32(8 + 4 * i, value, true);
  });
  numbers.forEach((value, i) => {
    head.setFloat64(32 + 8 * i, value, true);
  });
  bytes.set(text, 32 + 8 * numbers.length);
  return bytes.buffer;
}

const fieldsOf = (row: StepSummary): object => ({
  ...Object.fromEntries(Object.keys(step(0)).map((name) => [name, row[name as keyof StepSummary]])),
  layers: { ns: [...Array(row.layers.ns.length).keys()].map((i) => row.layers.ns[i]), bytes: [...Array(row.layers.bytes.length).keys()].map((i) => row.layers.bytes[i]) }, // prettier-ignore
});

describe('decodeSteps', () => {
  const steps = [
    step(7, { phase: 'prompt', timing: 'learned', template: null, token_count: 3, dropped: true }),
    step(8, { verdict: 'clean', reread_factor: 0.5, begin_ns: 2 ** 52, aborted: true }),
    step(9, { layers: { ns: [7, 8, 9], bytes: [4, 5, 6] } }),
  ];

  it('has every field of the steps', () => {
    const page = decodeSteps(frame(steps));
    expect(page.ok ? page.value.total : page.error).toBe(9);
    if (page.ok) expect(page.value.steps.map(fieldsOf)).toEqual(steps);
  });

  it('of no steps is empty', () => {
    expect(decodeSteps(frame([]))).toEqual({ ok: true, value: { total: 9, steps: [] } });
  });

  it('rows of two pages are of one class', () => {
    const [one, two] = [decodeSteps(frame(steps)), decodeSteps(frame([step(1)]))];
    if (!one.ok || !two.ok) throw new Error('not decoded');
    expect(Object.getPrototypeOf(one.value.steps[0])).toBe(
      Object.getPrototypeOf(two.value.steps[0]),
    );
    expect(one.value.steps[2]?.step).toBe(9);
    expect(two.value.steps[0]?.step).toBe(1);
  });

  const whole = frame(steps);
  const damaged = (offset: number, value: number): ArrayBuffer => {
    const copy = whole.slice(0);
    new DataView(copy).setFloat64(offset, value, true);
    return copy;
  };
  const at = (name: string): number => 32 + 8 * steps.length * Object.keys(step(0)).indexOf(name);
  it.each([
    ['shorter than its header', whole.slice(0, 31), 'does not begin with its kind'],
    ['of another kind', frame([]).slice(4), 'does not begin with its kind'],
    ['cut in a column', whole.slice(0, 200), 'a list of 3 steps is truncated'],
    ['cut in its description', whole.slice(0, -1), 'invalid list of steps'],
    ['without a column', frame(steps, (all) => all.filter(({ name }) => name !== 'step')), 'a column has no description'], // prettier-ignore
    ['with an unknown column instead', frame(steps, (all) => all.map((one) => (one.name === 'step' ? { name: 'x' } : one))), 'the column step is missing'], // prettier-ignore
    ['with a step of -1', damaged(at('step'), -1), 'the column step is missing or has an invalid'],
    ['with 2^40 tokens', damaged(at('token_count') + 8, 2 ** 40), 'the column token_count'],
    ['with an unknown phase', damaged(at('phase'), 5), 'the column phase'],
    ['with no begin', damaged(at('begin_ns'), NaN), 'the column begin_ns'],
    ['with no time of a layer', damaged(at('layers'), NaN), 'a value of a layer'],
  ])('rejects a list %s', (_, buffer, reason) => {
    const page = decodeSteps(buffer);
    expect(page.ok ? 'decoded' : page.error).toContain(reason);
  });
});
