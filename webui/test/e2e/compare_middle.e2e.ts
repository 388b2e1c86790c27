// Compare takes the middle: two sessions, phases, steps, tokens and layers; each figure as in REST and SQL.
import { describe, expect, it } from 'vitest';
import { formatBytes, formatNs } from '../../src/format';
import type { Breakdown, SessionComparison } from '../../src/net/types';
import { PageFixture } from './page_fixture';

const fixture = PageFixture.use();
const panel = () => fixture.page.getByRole('tabpanel', { name: 'Compare' });
const table = () => panel().getByRole('table', { name: 'Differences', exact: true });
const rows = async (): Promise<readonly (readonly string[])[]> =>
  table()
    .locator('tbody tr')
    .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));

// The sums of a side by the number of its tokens or steps, by name.
async function sideOf(
  session: string,
  query: string,
  by: number,
  value: (all: Breakdown['sums']['all']) => number,
): Promise<ReadonlyMap<string, number>> {
  const { rows: found } = await fixture.rest<Breakdown>(
    `sessions/${session}/breakdown?limit=10000&${query}`,
  );
  return new Map(found.map(({ name, all }) => [name, value(all) / by]));
}

const time = (all: Breakdown['sums']['all']): number => all.time_ns;
const bytes = (all: Breakdown['sums']['all']): number => all.bytes_read + all.bytes_written;

async function countOf(what: string, condition: string): Promise<number> {
  const { rows: found } = await fixture.sql<readonly number[]>(
    `SELECT ${what} FROM step WHERE ${condition}`,
  );
  return found[0]?.[0] ?? 0;
}

async function showAll(): Promise<void> {
  const all = panel().getByRole('button', { name: 'Show all' });
  await table().waitFor();
  if (await all.isVisible()) await all.click();
}

// The table of the page has each row of both sides, and a dash where a side has none.
async function expectRows(
  left: ReadonlyMap<string, number>,
  right: ReadonlyMap<string, number>,
  text: (value: number) => string,
): Promise<void> {
  await showAll();
  const names = new Set([...left.keys(), ...right.keys()]);
  await expect.poll(async () => (await rows()).length).toBe(1 + names.size);
  const side = (map: ReadonlyMap<string, number>, name: string): string => {
    const value = map.get(name);
    return value === undefined ? '–' : text(value);
  };
  const shown = new Map((await rows()).slice(1).map(([name = '', ...cells]) => [name, cells.slice(0, 2)])); // prettier-ignore
  for (const name of names) expect(shown.get(name), name).toEqual([side(left, name), side(right, name)]); // prettier-ignore
}

describe('the middle', () => {
  it('compares two sessions of different lengths per token; the link restores it', async () => {
    const { page } = fixture;
    const first = await fixture.generate({ prompt: 'A short run', max_tokens: 5 });
    const second = await fixture.recorded(24);
    await fixture.show(second, `with=${first}`, 'full=compare');
    const perToken = "phase = 'generate'";
    const here = await countOf('sum(token_count)', perToken);
    const { tokens } = await fixture.get<SessionComparison>(`comparison/${first}?limit=0`);
    expect(tokens.left).not.toBe(tokens.right);
    const query = 'by=op_kind&phase=generate';
    const left = await sideOf(second, query, here, time);
    await fixture.show(first);
    const there = await countOf('sum(token_count)', perToken);
    expect(there).toBeLessThan(here);
    const right = await sideOf(first, query, there, time);
    await fixture.show(second, `with=${first}`, 'full=compare');
    await expectRows(left, right, formatNs);
    // Both charts are drawn, and have the values as a table.
    for (const id of ['sides', 'difference', 'map_left', 'map_right', 'map_difference'])
      await panel().locator(`[data-chart=compare_${id}] canvas`).waitFor();
    // A map has what REST has of the first token, and the shorter side has no further ones.
    const map = (side: string) => panel().locator(`[data-chart=compare_map_${side}]`);
    const numbers = async (side: string): Promise<readonly (readonly string[])[]> => {
      await map(side).getByRole('radio', { name: 'Table' }).check();
      const all = map(side).locator('.vgrid-row');
      await all.first().waitFor();
      return all.evaluateAll((lines) => lines.map((line) => [...line.children].map((cell) => cell.textContent))); // prettier-ignore
    };
    const heat = await fixture.rest<{ readonly cells: readonly (readonly number[])[]; readonly y: { readonly rows: readonly string[] } }>(`sessions/${second}/heatmap?x=token&y=op_kind&value=time&phase=generate&width=1024&height=2048`); // prettier-ignore
    const widthOf = heat.cells[0]?.length ?? 0;
    const firstUsed = Array.from({ length: widthOf }, (_, n) => n).find((n) => heat.cells.some((row) => (row[n] ?? 0) > 0)) ?? 0; // prettier-ignore
    const shownMap = new Map((await numbers('left')).map(([name = '', ...cells]) => [name, cells]));
    heat.y.rows.forEach((name, row) => {
      const of = heat.cells[row] ?? [];
      if (shownMap.has(name)) expect(shownMap.get(name)?.slice(0, here)).toEqual(of.slice(firstUsed, firstUsed + here).map(formatNs)); // prettier-ignore
    });
    expect(shownMap.size).toBeGreaterThan(3);
    // The shorter side has no value where it has no token.
    for (const [, ...cells] of await numbers('right')) {
      expect(new Set(cells.slice(there)).size).toBe(1);
    }
    // The sentence of the server, first.
    const rest = await fixture.get<SessionComparison>(`comparison/${first}?limit=0`);
    const { change } = rest;
    expect(await panel().locator('.compare-facts > p').first().textContent()).toBe(change.text);
    for (const [session, tokenCount, side] of [[second, here, change.token?.left], [first, there, change.token?.right]] as const) {
      await fixture.show(session);
      const { rows: sums } = await fixture.sql<readonly number[]>(
        "SELECT bytes_read FROM phase_totals WHERE phase = 'generate'",
      );
      expect(side?.bytes_read).toBeCloseTo((sums[0]?.[0] ?? 0) / tokenCount, 3);
    } // prettier-ignore
    await fixture.show(second, `with=${first}`, 'full=compare', 'r=token:6:9');
    // One row of controls, which says that a range of the map has no effect here.
    await panel().getByText('ignores range of token').waitFor();
    const bar = await panel().locator('.compare-tools').boundingBox();
    expect(bar?.height).toBeLessThan(40);
    await fixture.show(second, `with=${first}`, 'tab=compare');
    await table().waitFor();
    const middle = await panel().locator('.compare-tools').boundingBox();
    expect(middle?.height).toBeLessThan(40);
    await fixture.show(second, `with=${first}`, 'full=compare');
    await table().waitFor();
    // What the server knows about the causes.
    const causes = panel().getByRole('table', { name: 'Causes of differences' });
    expect(await causes.locator('th[scope=rowgroup]').allInnerTexts()).toEqual(rest.causes.map(({ title }) => title)); // prettier-ignore
    expect(await fixture.axeViolations()).toEqual([]);
    const shown = await rows();
    await fixture.fresh(page.url());
    await expect.poll(async () => (await rows()).slice(0, 3)).toEqual(shown.slice(0, 3));
  });

  it('shows nothing of a session beside itself', async () => {
    const session = await fixture.recorded(24);
    await fixture.show(session, `with=${session}`, 'full=compare');
    await panel()
      .getByText(/^No difference: /)
      .waitFor();
    expect(await table().count()).toBe(0);
    expect(await panel().locator('canvas').count()).toBe(0);
  });

  it('compares the prompt with the answer, by bytes per step', async () => {
    const session = await fixture.recorded(24);
    await fixture.show(session, 'full=compare', 'p.compare=of:phases,value:bytes,by:component,per:step'); // prettier-ignore
    const steps = (phase: string) => countOf('count(*)', `phase = '${phase}'`);
    const of = async (phase: string) => sideOf(session, `by=component&phase=${phase}`, await steps(phase), bytes); // prettier-ignore
    const named = (map: ReadonlyMap<string, number>) => [...map.values()].map((value) => formatBytes(Math.round(value))).toSorted(); // prettier-ignore
    const [left, right] = [await of('prompt'), await of('generate')];
    await showAll();
    await expect.poll(async () => (await rows()).slice(1).map((row) => row[1]).filter((text) => text !== '–').toSorted()).toEqual(named(left)); // prettier-ignore
    expect((await rows()).slice(1).map((row) => row[2]).filter((text) => text !== '–').toSorted()).toEqual(named(right)); // prettier-ignore
  });

  it.each([
    ['steps', 'from_step=3&to_step=4', 'from_step=9&to_step=10'],
    ['tokens', 'from_token=6&to_token=7', 'from_token=12&to_token=13'],
  ])('compares two %s', async (of, a, b) => {
    const session = await fixture.recorded(24);
    const [first = '', second = ''] = [a, b].map((query) => /\d+/.exec(query)?.[0]);
    await fixture.show(session, 'full=compare', `p.compare=of:${of},a:${first},b:${second}`);
    const left = await sideOf(session, `by=op_kind&${a}`, 1, time);
    await expectRows(left, await sideOf(session, `by=op_kind&${b}`, 1, time), formatNs);
  });

  it('compares two layers, and names what only one of them has', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(24);
    await fixture.show(session, 'full=compare', 'p.compare=of:layers,a:0,b:2');
    const tokens = await countOf('sum(token_count)', "phase = 'generate'");
    const of = (layer: number) => sideOf(session, `by=op_kind&phase=generate&layers=${layer}`, tokens, time); // prettier-ignore
    const [left, right] = [await of(0), await of(2)];
    await expectRows(left, right, formatNs);
    await panel()
      .getByRole('button', { name: /^op time, op types/ })
      .click();
    await panel().getByRole('radio', { name: 'tensors' }).check();
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.hash.get('p.compare')).toBe('of:layers,b:2,by:tensor');
    // The same tensors of both layers are one row.
    await expect.poll(async () => (await rows()).map(([name]) => name)).toContain('blk.*.attn_q.weight'); // prettier-ignore
    const label = panel().getByLabel('with layer');
    await label.fill('0');
    await label.press('Enter');
    await page.keyboard.press('Tab');
    await panel()
      .getByText(/^No difference: layer 0 and layer 0/)
      .waitFor();
  });
});
