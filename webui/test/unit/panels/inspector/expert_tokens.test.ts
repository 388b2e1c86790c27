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
  const FROM = 'SELECT token_id, group_concat(DISTINCT layer_id) FROM expert WHERE expert_id = 3 AND token_id IS NOT NULL'; // prettier-ignore
  const BY = ' GROUP BY token_id ORDER BY token_id';

  it('are those of phase, range and filter', () => {
    expect(expertTokensQuery(3, view)).toEqual({ sql: `${FROM}${BY}`, missing: [] });
    const part = {
      phase: 'generate',
      range: { x: { axis: 'token', from: 5, to: 9 }, y: { axis: 'layer', from: 0, to: 2 } },
      filter: 'layer:2 expert:5 op:mul_mat',
    } as const;
    expect(expertTokensQuery(3, part)).toEqual({
      sql: `${FROM} AND phase = 'generate' AND layer_id = 2 AND token_id >= 5 AND token_id < 9 AND layer_id >= 0 AND layer_id < 2${BY}`,
      missing: ['op:mul_mat'],
    });
    const file = { x: null, y: { axis: 'file', from: 0, to: 9 } };
    expect(expertTokensQuery(3, { ...view, range: file }).missing).toEqual(['range of file']);
  });

  it('have the layers whose routers chose it, and lead to the token', () => {
    const data = new TraceData();
    data.addToken(token(4, { text: ' a' }));
    const rows = [
      [4, '2,10,0'],
      [5, '1'],
      [6, '0,1,2,3,4,5,6'],
    ];
    const used = expertTokens({ rows, more: false });
    expect(used.tokens[0]).toEqual({ token: 4, layers: [0, 2, 10] });
    const { links, json } = inspectExpert(3, data, used, 12);
    expect(links[0]?.title).toBe('Tokens that used it');
    expect(links[0]?.jumps.map(({ text, detail }) => [text, detail])).toEqual([
      ['␣a', 'token 4, layers 0, 2, 10'],
      ['token 5', 'token 5, layer 1'],
      ['token 6', 'token 6, 7 of 12 layers'],
    ]);
    expect(jumpToExpertToken(data, { token: 4, layers: [1] }, 12).to).toEqual({
      kind: 'token',
      token: 4,
    });
    expect(json).toEqual({ expert: 3, tokens: used.tokens });
    expect(inspectExpert(3, data, { ...used, more: true }, 12).links[0]?.title).toMatch(
      /^The first/,
    );
    expect(inspectExpert(3, data, null, 12).links[0]?.jumps).toEqual([]);
  });
});
