// The totals of the inspector: those of REST for everything that phase, range and filter select.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { exactBytes, exactNs, formatCount } from '../../../src/format';
import type { Breakdown, BreakdownRow, StepSummary } from '../../../src/net/types';
import { makeModel, makeModelWithoutVocabulary } from '../support/models';
import { PageFixture } from '../support/page_fixture';

// What a link selects, and the same as parameters of REST.
const PARTS = [
  { link: [], query: '', scope: 'whole session' },
  { link: ['ph=g'], query: 'phase=generate', scope: 'generate' },
  { link: ['ph=p'], query: 'phase=prompt', scope: 'prompt' },
  { link: ['r=token:6:9'], query: 'from_token=6&to_token=9', scope: 'tokens 6 – 8' },
  { link: ['r=token:6:9,layer:0:1'], query: 'from_token=6&to_token=9&layers=0', scope: 'tokens 6 – 8, layers 0' },
  { link: ['q=op:mul_mat'], query: 'op=mul_mat', scope: 'op:mul_mat' },
  { link: ['ph=g', 'q=kind:weight token:4-7'], query: 'phase=generate&kind=weight&from_token=4&to_token=8', scope: 'generate, kind:weight token:4-7' },
  { link: ['ph=g', 'q=layer:0'], query: 'phase=generate&layers=0', scope: 'generate, layer:0' },
] as const; // prettier-ignore

function totalsOf(fixture: PageFixture) {
  const figure = (name: string) =>
    fixture.inspector.locator(`.figure[data-figure="${name}"] b`).getAttribute('title');
  const scope = () => fixture.inspector.locator('.figures-scope');

  // `by`, `name`: the row of REST; null: the sum of everything.
  async function compare(
    selected: string,
    by: string,
    name: string | null,
    more = '',
    parts: readonly (typeof PARTS)[number][] = PARTS,
  ): Promise<void> {
    for (const part of parts) {
      const selection = selected === '' ? [] : [selected];
      await fixture.show(fixture.session ?? '', ...selection, ...part.link);
      const query = [`by=${by}`, 'limit=10000', part.query, more].filter(Boolean).join('&');
      const rest = await fixture.get<Breakdown>(`breakdown?${query}`);
      const row: BreakdownRow | undefined =
        name === null ? rest.sums : rest.rows.find((one) => one.name === name);
      const whole = more === '' ? part.scope : part.scope.replace('whole session', 'step ');
      await expect.poll(() => scope().innerText()).toContain(whole);
      if (!row || row.all.reads + row.all.writes === 0) {
        await expect.poll(async () => (await figure('accesses')) ?? '0').toBe('0');
        continue;
      }
      const { bytes_read: read, bytes_written: written, reads, writes, time_ns: time } = row.all;
      const what = `${selected} ${query}`;
      await expect
        .poll(() => figure('accesses'), { message: what })
        .toBe(formatCount(reads + writes));
      await expect.poll(() => figure('op time'), { message: what }).toBe(exactNs(time));
      if (by === 'all') {
        expect(await figure('read'), what).toBe(exactBytes(read));
        expect(await figure('written'), what).toBe(exactBytes(written));
      } else {
        expect(await figure('bytes'), what).toBe(exactBytes(read + written));
      }
    }
  }
  return { compare, scope };
}

describe('the totals', () => {
  const fixture = PageFixture.use();
  const { compare, scope } = totalsOf(fixture);

  it.each([
    ['a tensor', 't:blk.0.ffn_up.weight', 'tensor', 'blk.0.ffn_up.weight'],
    ['a layer', 'l:0', 'layer', '0'],
    ['a head', 'h:0.1', 'head', 'blk.0 head 1'],
    ['the session', '', 'all', null],
  ] as const)('of %s are those of phase, range and filter', async (_, selection, by, name) => {
    await fixture.recorded(12);
    await compare(selection === '' ? '' : `sel=${selection}`, by, name);
  });

  it('of an op are those of phase, range and filter', async () => {
    await fixture.recorded(12);
    const { rows } = await fixture.sql<[number, string]>(
      "SELECT min(op), tensor_name FROM op WHERE step = 3 AND op_layer_id = 0 GROUP BY tensor_name HAVING count(*) = 1 AND min(operation_type) = 'MUL_MAT' LIMIT 1",
    );
    const [op, name] = rows[0] ?? [0, ''];
    // A step of generation is not in the prompt.
    const parts = PARTS.filter(({ scope }) => scope !== 'prompt');
    await compare(`step=3&sel=o:${op}`, 'op', name, '', parts);
  });

  it('of a token are those of its step, with the filter', async () => {
    await fixture.recorded(12);
    const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps?from=4&limit=1');
    await compare(`sel=k:${steps[0]?.token_id ?? 0}`, 'all', null, 'from_step=4&to_step=5');
    await expect.poll(() => scope().innerText()).toContain('step 4 (');
  });

  it('say what they cannot honour', async () => {
    await fixture.recorded(12);
    const session = fixture.session ?? '';
    await fixture.show(session, 'sel=l:0', 'q=-role:q', 'r=,file:0:100000');
    await expect.poll(() => scope().innerText()).toMatch(/ignores -role:q, range of file/);
    await fixture.show(session, 'sel=t:blk.0.ffn_up.weight', 'q=layer:1');
    await fixture.inspector.getByText('Nothing of it is in this selection.').waitFor();
    await fixture.show(session, 'step=3', 'sel=o:5', 'ph=g');
    await fixture.inspector.getByText('of the whole step, not filtered').waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
  });
});

describe('the totals of a mixture of experts', () => {
  let folder = '';
  const fixture = PageFixture.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-totals-'));
    return ['-m', await makeModel(folder, 'moe')];
  });
  afterAll(() => rm(folder, { recursive: true }));
  const { compare, scope } = totalsOf(fixture);

  it('of an expert are those of phase, range and filter', async () => {
    await fixture.recorded(12);
    const rest = await fixture.get<Breakdown>('breakdown?by=expert&sort=-accesses&limit=1');
    const name = rest.rows[0]?.name ?? '';
    const [, layer, expert] = /^blk\.(\d+) expert (\d+)$/.exec(name) ?? [];
    const link = `sel=x:${layer ?? ''}.${expert ?? ''}`;
    await compare(link, 'expert', name);
    await fixture.show(fixture.session ?? '', link, `q=expert:${expert ?? ''}`);
    await expect.poll(() => scope().innerText()).toContain('whole session');
  });
});

// Recurrent layers have no heads and no KV cache; without a vocabulary a prompt is numbers of tokens.
describe.each([
  ['a recurrent model', (folder: string) => makeModel(folder, 'mamba'), {}, 'blk.0.ssm_in.weight'],
  ['a model without a vocabulary', makeModelWithoutVocabulary, { prompt: undefined, tokens: [1, 40, 41, 42] }, 'blk.0.ffn_up.weight'],
] as const)('the totals of %s', (_, make, request, tensor) => {
  let folder = '';
  const fixture = PageFixture.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-totals-'));
    return ['-m', await make(folder)];
  });
  afterAll(() => rm(folder, { recursive: true }));
  const { compare } = totalsOf(fixture);

  it.each([
    ['a tensor', `sel=t:${tensor}`, 'tensor', tensor],
    ['a layer', 'sel=l:0', 'layer', '0'],
    ['the session', '', 'all', null],
  ] as const)('of %s are those of phase, range and filter', async (__, selected, by, name) => {
    await fixture.recorded(12, request);
    await compare(selected, by, name, '', PARTS.slice(0, 6));
  });
}); // prettier-ignore
