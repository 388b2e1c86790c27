import { describe, expect, it } from 'vitest';
import {
  expertTokens,
  expertTokensQuery,
  jumpToExpertToken,
} from '../../../../src/panels/inspector/expert_tokens';
import { inspectExpert } from '../../../../src/panels/inspector/inspect_session';
import { TraceData } from '../../../../src/state/session/trace_data';
import { token } from '../../make';

describe('the tokens of an expert', () => {
  const view = { phase: 'all', range: null, filter: '' } as const;
  const expert = { layer: 2, expert: 3 };
  const FROM = 'SELECT DISTINCT token_id FROM expert WHERE layer_id = 2 AND expert_id = 3 AND token_id IS NOT NULL'; // prettier-ignore
  const BY = ' ORDER BY token_id';

  it('are those of phase, range and filter', () => {
    expect(expertTokensQuery(expert, view)).toEqual({ sql: `${FROM}${BY}`, missing: [] });
    const part = {
      phase: 'generate',
      range: { x: { axis: 'token', from: 5, to: 9 }, y: { axis: 'layer', from: 0, to: 2 } },
      filter: 'layer:1 expert:5 op:mul_mat',
    } as const;
    expect(expertTokensQuery(expert, part)).toEqual({
      sql: `${FROM} AND phase = 'generate' AND token_id >= 5 AND token_id < 9 AND layer_id >= 0 AND layer_id < 2${BY}`,
      missing: ['op:mul_mat'],
    });
    const file = { x: null, y: { axis: 'file', from: 0, to: 9 } };
    expect(expertTokensQuery(expert, { ...view, range: file }).missing).toEqual(['range of file']);
  });

  it('lead to the token', () => {
    const data = new TraceData();
    data.addToken(token(4, { text: ' a' }));
    const used = expertTokens({ rows: [[4], [5]], more: false });
    const { links, json, title, place } = inspectExpert(expert, data, used);
    expect(title).toBe('3 of layer 2');
    expect(place?.name).toBe('blk.2 expert 3');
    expect(links[0]?.title).toBe('Tokens that used it');
    expect(links[0]?.jumps.map(({ text, detail }) => [text, detail])).toEqual([
      ['␣a', 'token 4'],
      ['token 5', 'token 5'],
    ]);
    expect(jumpToExpertToken(data, 4).to).toEqual({ kind: 'token', token: 4 });
    expect(json).toEqual({ layer: 2, expert: 3, tokens: [4, 5] });
    expect(inspectExpert(expert, data, { ...used, more: true }).links[0]?.title).toMatch(
      /^The first/,
    );
    expect(inspectExpert(expert, data, null).links[0]?.jumps).toEqual([]);
  });
});
