import { describe, expect, it } from 'vitest';
import type { Node, Tensor } from '../../../src/net/types';
import { outputName, selectionIn } from '../../../src/state/view/follow_selection';
import { templateGraph } from '../../../src/state/session/per_session';
import {
  decodeSelection,
  encodeSelection,
  type Selection,
} from '../../../src/state/view/selection';
import { randomOf } from '../make';

// A graph of ops that are executed in this order, each with the name of its output.
function graphOf(template: number, ...outputs: readonly string[]) {
  const tensors = outputs.map((tensor_name, tensor) => ({ tensor, tensor_name }) as Tensor);
  const nodes = outputs.map(
    (name, i) => ({ node: i, name, tensor: i, executed_op: i, sources: [] }) as unknown as Node,
  );
  return templateGraph(template, nodes, tensors);
}
const decode = graphOf(2, 'embd', 'Qcur-0', 'Qcur-0', 'ffn_out-0', 'result');
const prompt = graphOf(1, 'embd', 'inp_out_ids', 'Qcur-0', 'Qcur-0', 'ffn_out-0');

describe('tensors', () => {
  it('with the same name are numbered', () => {
    expect(decode.keys).toEqual(['embd', 'Qcur-0', 'Qcur-0~2', 'ffn_out-0', 'result']);
    expect(decode.tensorOf.get('Qcur-0~2')).toBe(2);
  });
});

describe('a selection in another graph', () => {
  it('has the index of the output with the same name', () => {
    const second = decode.keys[2] ?? '';
    expect(selectionIn(prompt, { kind: 'op', op: 2 }, second)).toEqual({ kind: 'op', op: 3 });
    expect(selectionIn(prompt, { kind: 'node', node: 2 }, second)).toEqual({
      kind: 'node',
      node: 3,
    });
  });

  it('of an access becomes its op, and keeps its name without such an output', () => {
    const access = { kind: 'access', op: 3, access: 7, part: 0 } as const;
    expect(selectionIn(prompt, access, 'ffn_out-0')).toEqual({ kind: 'op', op: 4 });
    const lost = selectionIn(prompt, { kind: 'op', op: 4 }, 'result');
    expect(lost).toEqual({ kind: 'output', of: 'op', name: 'result' });
    expect(selectionIn(decode, lost, 'result')).toEqual({ kind: 'op', op: 4 });
    const lostNode = selectionIn(prompt, { kind: 'node', node: 4 }, 'result');
    expect(lostNode).toEqual({ kind: 'output', of: 'node', name: 'result' });
    expect(selectionIn(decode, lostNode, 'result')).toEqual({ kind: 'node', node: 4 });
  });
});

describe('a selection in a link', () => {
  it('has the name of its output; an index is accepted', () => {
    const second = { kind: 'op', op: 2 } as const;
    expect(encodeSelection(second, outputName(decode, second))).toBe('o:Qcur-0~2');
    expect(encodeSelection({ kind: 'node', node: 3 }, 'ffn_out-0')).toBe('n:ffn_out-0');
    expect(decodeSelection('o:Qcur-0~2')).toEqual({ kind: 'output', of: 'op', name: 'Qcur-0~2' });
    expect(decodeSelection('o:2')).toEqual(second);
  });

  it('has the index of an output without a name, or whose name is a number', () => {
    for (const name of [null, '', '403', 'x'.repeat(201)])
      expect(encodeSelection({ kind: 'op', op: 12 }, name)).toBe('o:12');
  });

  it('can be any text: what it gives is written as it was read', () => {
    const random = randomOf(5);
    const letters = [
      'o',
      'n',
      'a',
      't',
      'x',
      ':',
      ':',
      '.',
      '~',
      '2',
      '2.7',
      '-',
      ' ',
      '\n',
      '%',
      'é',
    ];
    const kinds = new Set<Selection['kind']>();
    for (let round = 0; round < 4000; round += 1) {
      const rest = Array.from({ length: random() * 9 }, () => letters[Math.floor(random() * letters.length)]); // prettier-ignore
      const text = `${random() < 0.8 ? `${letters[Math.floor(random() * 5)] ?? ''}:` : ''}${rest.join('')}`; // prettier-ignore
      const selection = decodeSelection(text);
      if (!selection) continue;
      kinds.add(selection.kind);
      expect(decodeSelection(encodeSelection(selection)), text).toEqual(selection);
    }
    expect([...kinds].sort()).toEqual(['expert', 'node', 'op', 'output', 'tensor']);
  });
});
