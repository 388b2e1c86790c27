import { describe, expect, it } from 'vitest';
import type { Node, Tensor } from '../../../src/net/types';
import { selectionIn } from '../../../src/state/follow_selection';
import { templateGraph } from '../../../src/state/per_session';

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

  it('of an access becomes its op, and is empty without such an output', () => {
    const access = { kind: 'access', op: 3, access: 7, part: 0 } as const;
    expect(selectionIn(prompt, access, 'ffn_out-0')).toEqual({ kind: 'op', op: 4 });
    expect(selectionIn(prompt, { kind: 'op', op: 4 }, 'result')).toBeNull();
  });
});
