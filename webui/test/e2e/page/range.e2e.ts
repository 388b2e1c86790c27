// The brushed range filters every view, or the view says what it ignores. And a click on a node lists
// its accesses.
import { describe, expect, it } from 'vitest';
import type { Op, StepSummary } from '../../../src/net/types';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const table = () => fixture.page.getByRole('tabpanel', { name: 'Table' });
const grid = (name: RegExp) => fixture.page.getByRole('grid', { name });
// Without the heading.
const rowsOf = async (name: RegExp): Promise<number> =>
  Number(await grid(name).getAttribute('aria-rowcount')) - 1;
const RANGE = 'r=step:4:8,layer:1:2';

describe('a range of steps and layers', () => {
  it('filters the ops of a step in it, and says that another step is not in it', async () => {
    await fixture.show(await fixture.recorded(), 'step=5', RANGE);
    const { ops } = await fixture.get<{ ops: Op[] }>('steps/5/ops?limit=1000');
    const wanted = ops.filter(({ op_layer_id: layer }) => layer === 1).length;
    expect(wanted).toBeLessThan(ops.length);
    await expect.poll(() => rowsOf(/Ops of step 5/)).toBe(wanted);
    await fixture.show(fixture.session ?? '', 'step=9', RANGE);
    await table().getByText('Step 9 is not in the selected range.').waitFor();
    await expect.poll(() => rowsOf(/Ops of step 9/)).toBe(0);
    await table().getByRole('button', { name: 'Show step 4 of the range' }).click();
    await expect.poll(() => rowsOf(/Ops of step 4/)).toBe(wanted);
  });

  it('filters the steps, and says that they have no layers', async () => {
    await fixture.show(await fixture.recorded(), RANGE);
    await fixture.rows('Steps');
    await expect.poll(() => rowsOf(/Steps of the session/)).toBe(4);
    await table().getByText('ignores range of layer').waitFor();
    const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps');
    const tokens = steps.slice(2, 5);
    const [from, to] = [tokens[0]?.token_id ?? 0, (tokens.at(-1)?.token_id ?? 0) + 1];
    await fixture.show(fixture.session ?? '', `r=token:${from}:${to}`, 'p.table=rows:steps');
    await expect.poll(() => rowsOf(/Steps of the session/)).toBe(3);
  });

  it('filters the accesses of a step and of the session', async () => {
    await fixture.show(await fixture.recorded(), 'step=5', RANGE, 'p.table=rows:accesses');
    const count = async (where: string): Promise<number> =>
      (await fixture.sql<[number]>(`SELECT count(*) FROM access WHERE ${where}`)).rows[0]?.[0] ??
      -1;
    const ofStep = await count('step = 5 AND op_layer_id = 1');
    await expect.poll(() => rowsOf(/Accesses of step 5/)).toBe(ofStep);
    await fixture.show(fixture.session ?? '', 'step=9', RANGE, 'p.table=rows:accesses');
    await table().getByText('Step 9 is not in the selected range.').waitFor();
    await fixture.show(fixture.session ?? '', RANGE, 'p.table=rows:accesses,all');
    const ofRange = await count('step BETWEEN 4 AND 7 AND op_layer_id = 1');
    await expect.poll(() => rowsOf(/Accesses of the session/)).toBe(ofRange);
  });

  it('filters the totals of a step and of the session', async () => {
    await fixture.show(await fixture.recorded(), 'step=9', RANGE, 'p.table=by:tensor');
    await table().getByText('Step 9 is not in the selected range.').waitFor();
    const totals = async (query: string): Promise<number> =>
      (await fixture.get<{ total: number }>(`breakdown?by=tensor&layers=1&limit=0&${query}`)).total;
    for (const [options, query] of [
      ['by:tensor', 'from_step=5&to_step=6'],
      ['by:tensor,all', 'from_step=4&to_step=8'],
    ] as const) {
      await fixture.show(fixture.session ?? '', 'step=5', RANGE, `p.table=${options}`);
      const wanted = await totals(query);
      await expect.poll(() => rowsOf(/Totals by tensor/)).toBe(wanted);
    }
  });

  it('filters the graph: the list has only nodes of the layers, the picture dims the others', async () => {
    const { page } = fixture;
    const across = () => grid(/Nodes of layer 1/).getByText(/^cross layer/);
    await fixture.show(await fixture.recorded(), 'step=5', 'tab=graph', 'l=1', 'p.graph=list');
    await across().first().waitFor();
    const all = await rowsOf(/Nodes of layer 1/);
    await fixture.show(fixture.session ?? '', 'step=5', 'tab=graph', 'l=1', 'p.graph=list', RANGE);
    await expect.poll(() => across().count()).toBe(0);
    expect(await rowsOf(/Nodes of layer 1/)).toBeGreaterThan(all / 2);
    const pixels = async (...parts: readonly string[]): Promise<number> => {
      await fixture.show(await fixture.recorded(), 'step=5', 'tab=graph', 'l=0', ...parts);
      await page.locator('.graph[data-drawn="0"]').waitFor();
      await expect.poll(() => fixture.pixels('.graph-base')).not.toBe(0);
      await page.waitForTimeout(300);
      return fixture.pixels('.graph-base');
    };
    expect(await pixels(RANGE)).not.toBe(await pixels());
    await fixture.show(fixture.session ?? '', 'step=9', 'tab=graph', RANGE);
    await page.getByText('step 9 is not in the range').waitFor();
  });

  it('of other axes is not ignored without a word', async () => {
    await fixture.show(await fixture.recorded(), 'step=5', 'r=,op_kind:0:2', 'tab=graph');
    const said = fixture.page.getByText('ignores range of op kind');
    await expect.poll(() => said.count()).toBeGreaterThanOrEqual(2); // graph and ops
    for (const options of ['rows:steps', 'rows:accesses', 'by:tensor,all']) {
      await fixture.show(fixture.session ?? '', 'step=5', 'r=,op_kind:0:2', `p.table=${options}`);
      await table().getByText('ignores range of op kind').waitFor();
      await fixture.page
        .getByRole('tabpanel', { name: 'Map' })
        .getByText('ignores range of op kind')
        .waitFor();
    }
  });
});

describe('a click on a node', () => {
  const click = async (name: RegExp): Promise<void> => {
    const list = fixture.page.getByRole('list', { name: 'Nodes of the layer' });
    await list.getByRole('button', { name }).evaluate((button) => {
      if (button instanceof HTMLElement) button.click();
    });
  };

  it.each([
    [
      'of an op',
      /^MUL_MAT ffn_up-2/,
      'ffn_up-2',
      "op = (SELECT op FROM op WHERE step = 6 AND tensor_name = 'ffn_up-2')",
    ],
    [
      'of a weight',
      /^weight blk\.2\.ffn_up\.weight, /,
      'blk.2.ffn_up.weight',
      "tensor_name = 'blk.2.ffn_up.weight'",
    ],
  ] as const)('%s lists its accesses, and nothing else', async (_, node, name, where) => {
    await fixture.show(await fixture.recorded(), 'step=6', 'l=2', 'tab=graph');
    await fixture.page.locator('.graph[data-drawn="2"]').waitFor();
    await click(node);
    await table().getByText(`only ${name}`).waitFor();
    const { rows } = await fixture.sql<[number]>(`SELECT count(*) FROM access WHERE step = 6 AND ${where}`); // prettier-ignore
    expect(rows[0]?.[0]).toBeGreaterThan(0);
    await expect.poll(() => rowsOf(/Accesses of step 6/)).toBe(rows[0]?.[0]);
    await table().getByRole('button', { name: 'All of the step' }).click();
    const all = await fixture.sql<[number]>('SELECT count(*) FROM access WHERE step = 6');
    await expect.poll(() => rowsOf(/Accesses of step 6/)).toBe(all.rows[0]?.[0]);
  });
});

describe('a range of tensors', () => {
  const tensors = async () => {
    const heat = await fixture.get<{ y: { rows: readonly string[] } }>('heatmap?x=step&y=tensor&value=bytes&height=2048'); // prettier-ignore
    return ['tensor:10:34', heat.y.rows.slice(10, 34)] as const;
  };
  const weights = async () => {
    const { rows } = await fixture.sql<[string, number, number]>(
      'SELECT DISTINCT tensor_name, file_offset, file_offset + file_bytes FROM tensor WHERE file_offset IS NOT NULL ORDER BY 2',
    );
    const some = rows.slice(3, 16); // of two layers
    const names = some.map(([name]) => name.replace(/^blk\.(\d+)\.(.*)\.weight$/, 'layer $1 $2'));
    return [`file:${some[0]?.[1] ?? 0}:${some.at(-1)?.[2] ?? 0}`, names] as const;
  };

  it.each([
    ['y:tensor,v:bytes', tensors],
    ['y:file,x:step,v:bytes', weights],
  ] as const)('lists the names of all in %s', async (map, make) => {
    const session = await fixture.recorded();
    const { page } = fixture;
    const [range, expected] = await make();
    await fixture.show(session, 'full=map', `p.map=${map}`, `r=step:4:8,${range}`);
    await page.getByRole('button', { name: `${expected.length} tensors`, exact: true }).click();
    const names = page.getByRole('list', { name: 'Names in the range' });
    expect(await names.locator('li').allInnerTexts()).toEqual(expected);
    expect(await fixture.axeViolations()).toEqual([]);
  });
});
