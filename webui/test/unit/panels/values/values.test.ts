import { describe, expect, it } from 'vitest';
import type { CapturedOutput } from '../../../../src/net/types';
import { capturedText, sortedCaptured } from '../../../../src/panels/values/captured';
import {
  decodeValues,
  defaultValues,
  encodeValues,
  withOutput,
  type ValuesOptions,
} from '../../../../src/panels/values/values_options';
import { wholeCamera } from '../../../../src/plane/camera';

const some: ValuesOptions = {
  of: { step: 3, op: 17, output: 'l_out-3.src1 (view),%' },
  show: 'picture',
  cells: 'max_abs',
  at: { row: 3, column: 40 },
  camera: { x: { from: 0, to: 64.5 }, ys: [{ from: 1, to: 2 }] },
};

describe('the options of the panel Values', () => {
  it('are the same after a link', () => {
    expect(decodeValues(encodeValues(some))).toEqual(some);
    expect(encodeValues(defaultValues)).toBe('');
    expect(decodeValues('')).toEqual(defaultValues);
  });

  it('of a damaged link are the default ones', () => {
    const damaged = 'of:1,n:%E0%A4%A,show:all,cells:scale,at:1.5:2,cx:5:5,cy0:-1:2,x';
    expect(decodeValues(damaged)).toEqual(defaultValues);
    expect(decodeValues('of:1:2').of).toBe(null); // without a name
  });

  it('of another output show all of it', () => {
    const other = { step: 3, op: 18, output: 'x' };
    expect(withOutput(some, other)).toEqual({ ...some, of: other, at: null, camera: wholeCamera });
    expect(withOutput(some, some.of ?? other)).toBe(some);
  });
});

describe('the list of captured values', () => {
  const row = (output: string, max: number | null): CapturedOutput => ({
    step: 0, op: 1, token: 0, tokens: 4, operation: 'ADD', output, part: 'output', layer: 0, type: 'F32',
    shape: [2, 4], bytes: 32, min: 0, max, mean: 0, std: 0, norm: 0, nan: 0, inf: 0,
  }); // prettier-ignore
  const rows = [row('l_out-10', 1), row('l_out-9', null), row('l_out-2', 3)];
  const names = (key: string, descending = false) =>
    sortedCaptured(rows, { key, descending }).map(({ output }) => output);

  it('is sorted by any column, names by their numbers, missing values last', () => {
    expect(names('')).toEqual(['l_out-10', 'l_out-9', 'l_out-2']);
    expect(names('output')).toEqual(['l_out-2', 'l_out-9', 'l_out-10']);
    expect(names('max')).toEqual(['l_out-10', 'l_out-2', 'l_out-9']);
    expect(names('max', true)).toEqual(['l_out-2', 'l_out-10', 'l_out-9']);
    expect(names('no_column')).toEqual(names(''));
  });

  it('says what is not in it', () => {
    const list = { total: 3, bytes: 96, not_captured: 0, rows };
    expect(capturedText(list)).toBe('3 outputs, 96 B.');
    expect(capturedText({ ...list, total: 9 })).toContain('The first 3 are listed.');
    expect(capturedText({ ...list, not_captured: 1 })).toContain('1 output was left out');
    expect(capturedText({ ...list, not_captured: 2 })).toContain('2 outputs were left out');
  });
});
