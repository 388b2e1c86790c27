import { describe, expect, it } from 'vitest';
import { progressOf } from '../../../src/panels/chat/RunStrip';
import { EMPTY_RUN } from '../../../src/state/request/chat';
import { runLimit } from '../../../src/state/request/run_limit';
import { TraceData } from '../../../src/state/session/trace_data';
import { figuresOf } from '../../../src/strip/figures';
import { step } from '../make';

const RUN = { ...EMPTY_RUN, state: 'running', prompt_tokens: 10, generated: 87 } as const;

describe('the limit of a run', () => {
  it.each([
    ['its token limit, if the context has room', 4087, 4087, false],
    ['what the context has room for', 4088, 4087, true],
  ])('is %s', (_name, max_tokens, tokens, isContext) => {
    expect(runLimit({ max_tokens, prompt_tokens: 10 }, { context: 4096 })).toEqual({
      tokens,
      isContext,
    });
  });

  it('is the token limit while the context or the prompt is not known', () => {
    const limit = { tokens: 9000, isContext: false };
    expect(runLimit({ max_tokens: 9000, prompt_tokens: 10 }, null)).toEqual(limit);
    expect(runLimit({ max_tokens: 9000, prompt_tokens: 0 }, { context: 4096 })).toEqual(limit);
  });

  it('is what the progress and the time left count to', () => {
    const limit = runLimit({ ...RUN, max_tokens: 12_840 }, { context: 4096 });
    expect(progressOf(RUN, limit, false)).toEqual({
      share: 87 / 4087,
      text: 'Generating 87 of at most 4\u202f087 tokens (context)',
    });
    const data = new TraceData();
    data.addStep(step(0, { begin_ns: 0, end_ns: 1e9 })); // 1 token/s
    const left = figuresOf(data, null, RUN, limit, true, null).find(
      ({ name }) => name === 'time left',
    );
    expect(left).toMatchObject({ value: '66 min 40 s' });
    expect(left?.hint).toContain('context is full');
  });
});
