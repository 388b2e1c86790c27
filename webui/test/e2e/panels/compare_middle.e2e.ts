// Compare takes the middle: two sessions, phases, steps, tokens and layers; each figure as in REST and SQL.
import { describe, expect, it } from 'vitest';
import { formatBytes, formatNs } from '../../../src/format';
import { formatValue } from '../../../src/charts/table';
import type { Breakdown, SessionComparison } from '../../../src/net/types';
import { withoutLayer } from '../../../src/panels/compare/pair';
import { PageFixture } from '../support/page_fixture';

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
  value: (row: Breakdown['sums']) => number | null,
): Promise<ReadonlyMap<string, number | null>> {
  const { rows: found } = await fixture.rest<Breakdown>(
    `sessions/${session}/breakdown?limit=10000&step_times=true&${query}`,
  );
  const of = (row: Breakdown['sums']): number | null => {
    const all = value(row);
    return all === null ? null : all / by;
  };
  return new Map(found.map((row) => [row.name, of(row)]));
}

const time = ({ all }: Breakdown['sums']): number => all.time_ns;
const median = ({ step_ns }: Breakdown['sums']): number | null => step_ns?.median ?? null;
const bytes = ({ all }: Breakdown['sums']): number => all.bytes_read + all.bytes_written;

async function countOf(what: string, condition: string): Promise<number> {
  const { rows: found } = await fixture.sql<readonly number[]>(
    `SELECT ${what} FROM step WHERE ${condition}`,
  );
  return found[0]?.[0] ?? 0;
}

async function showAll(): Promise<void> {
  const all = panel().locator('.compare-table').getByRole('button', { name: 'Show all' });
  await table().waitFor();
  if (await all.isVisible()) await all.click();
}

// The table of the page has each row of both sides, and a dash where a side has none.
async function expectRows(
  left: ReadonlyMap<string, number | null>,
  right: ReadonlyMap<string, number | null>,
  text: (value: number) => string,
): Promise<void> {
  await showAll();
  const names = new Set([...left.keys(), ...right.keys()]);
  await expect.poll(async () => (await rows()).length).toBe(1 + names.size);
  const side = (map: ReadonlyMap<string, number | null>, name: string): string => {
    const value = map.get(name) ?? null;
    return value === null ? '–' : text(value);
  };
  const shown = new Map((await rows()).slice(1).map(([name = '', ...cells]) => [name, cells.slice(0, 2)])); // prettier-ignore
  for (const name of names) expect(shown.get(name), name).toEqual([side(left, name), side(right, name)]); // prettier-ignore
}

interface Heat {
  readonly cells: readonly (readonly number[])[];
  readonly x: { readonly rows: readonly string[] };
  readonly y: { readonly rows: readonly string[] };
}
const heatOf = (session: string, query: string): Promise<Heat> =>
  fixture.rest<Heat>(`sessions/${session}/heatmap?${query}&width=1024&height=2048`);
const mapOf = (part: string) => panel().locator(`[data-chart=compare_map_${part}]`);

// The cells of a map by the names of its rows, from its table.
async function mapRows(part: string): Promise<ReadonlyMap<string, readonly string[]>> {
  await mapOf(part).getByRole('radio', { name: 'Table' }).check();
  const lines = mapOf(part).locator('.vgrid-row');
  await lines.first().waitFor();
  const all = await lines.evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent))); // prettier-ignore
  return new Map(all.map(([name = '', ...cells]) => [name, cells]));
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
    const left = await sideOf(second, query, 1, median);
    await fixture.show(first);
    const there = await countOf('sum(token_count)', perToken);
    expect(there).toBeLessThan(here);
    const right = await sideOf(first, query, 1, median);
    await fixture.show(second, `with=${first}`, 'full=compare');
    await expectRows(left, right, formatNs);
    // The charts are drawn, and have the values as a table. Differences of times that are not
    // comparable, as on a busy machine, are marked.
    const { comparable } = (await fixture.get<SessionComparison>(`comparison/${first}?limit=0`)).step_ns.generate ?? {}; // prettier-ignore
    for (const id of ['sides', 'map_left', 'map_right', 'difference', 'map_difference'])
      // prettier-ignore
      await panel().locator(`[data-chart=compare_${id}] canvas`).waitFor();
    const few = panel().getByText('Too few undisturbed steps to compare times');
    expect((await few.count()) > 0).toBe(comparable === false);
    const marked = (await rows()).filter((cells) => cells[3]?.endsWith(' *')).length;
    expect(marked > 0).toBe(comparable === false);
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
    // The name of the other session is whole, and in the tooltip with its id.
    const choice = panel().getByRole('combobox', { name: 'Compare with session' });
    const width = (await choice.boundingBox())?.width ?? 0;
    await choice.evaluate((one) => {
      (one as HTMLElement).style.setProperty('max-width', 'none');
    });
    expect((await choice.boundingBox())?.width).toBeCloseTo(width, 0);
    await choice.evaluate((one) => (one as HTMLElement).style.removeProperty('max-width'));
    expect(width).toBeGreaterThan(104);
    expect(await choice.getAttribute('title')).toContain(first);
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
    const named = (map: ReadonlyMap<string, number | null>) => [...map.values()].map((value) => formatBytes(Math.round(value ?? 0))).toSorted(); // prettier-ignore
    const [left, right] = [await of('prompt'), await of('generate')];
    await showAll();
    await expect.poll(async () => (await rows()).slice(1).map((row) => row[1]).filter((text) => text !== '–').toSorted()).toEqual(named(left)); // prettier-ignore
    expect((await rows()).slice(1).map((row) => row[2]).filter((text) => text !== '–').toSorted()).toEqual(named(right)); // prettier-ignore
  });

  it('shows no time of a prompt whose only step was learned, and says why', async () => {
    // A new model of the server: its first prompt is one step with a new graph.
    const session = await fixture.generate({ prompt: 'Once upon a time there was', max_tokens: 4 });
    await fixture.show(session, 'full=compare', 'p.compare=of:phases');
    const { times } = await fixture.get<Breakdown>('breakdown?by=op_kind&phase=prompt&step_times=true'); // prettier-ignore
    await table().waitFor();
    const total = (await rows())[0] ?? [];
    if (times?.steps === 0) {
      expect([total[1], total[3]]).toEqual(['not measured', 'not measured']);
      // The sentence has the bytes of both, and a click shows them.
      await panel().getByText(/^A token of the prompt reads .* Time per token.*: not measured/).waitFor(); // prettier-ignore
      // The reason and what to do, in the words of the server.
      expect(times.text).toMatch(/left out: 1 learned\. .* run another prompt while the model stays loaded\.$/); // prettier-ignore
      await panel().getByText(`prompt: ${times.text.replace('Times: ', '').slice(0, -1)}`).first().waitFor(); // prettier-ignore
      await panel().getByRole('button', { name: 'Compare the bytes' }).click();
      await expect.poll(async () => (await rows())[0]?.[1]).toMatch(/ [KM]iB$/);
    } else expect(total[1]).not.toBe('0 ns');
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

  it.each([
    ['tokens', 'from_token=6&to_token=7', 'from_token=5&to_token=6', time],
    ['steps', 'from_step=3&to_step=4', 'from_step=4&to_step=5', time],
    ['layers', 'phase=generate&layers=1', 'phase=generate&layers=0', median],
  ] as const)('compares %s of two sessions', async (of, a, b, value) => {
    const other = await fixture.generate({ prompt: 'A short run', max_tokens: 5 });
    const session = await fixture.recorded(24);
    const [first = '', second = ''] = [a, b].map((query) => /(?<==)\d+/.exec(query)?.[0]);
    await fixture.show(session, `with=${other}`, 'full=compare', `p.compare=of:${of},a:${first},b:${second}`); // prettier-ignore
    const left = await sideOf(session, `by=op_kind&${a}`, 1, value);
    await expectRows(left, await sideOf(other, `by=op_kind&${b}`, 1, value), formatNs);
    const heads = await table().locator('thead th').allInnerTexts();
    const word = of.slice(0, -1);
    expect(heads.slice(1, 3)).toEqual([`${word} ${first}`, `${word} ${second} of the other session`]); // prettier-ignore
    // Without the other session, both are of this one.
    const choice = panel().getByRole('combobox', { name: 'Compare with session' });
    await choice.selectOption({ label: 'this session' });
    await expectRows(left, await sideOf(session, `by=op_kind&${b}`, 1, value), formatNs);
  });

  it('shows a layer of both sides as graphs on one layout, with the values of REST', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(24);
    await fixture.show(session, 'full=compare', 'l=1', 'p.compare=of:phases,value:bytes,per:step'); // prettier-ignore
    const graph = panel().getByRole('group', { name: 'Graph', exact: true });
    const part = (name: string) => `.compare-graphs [data-part=${name}] canvas`;
    const parts = ['left', 'right', 'difference'];
    for (const one of parts) await expect.poll(() => fixture.pixels(part(one))).not.toBe(0);
    // All three are zoomed together.
    const before = await Promise.all(parts.map((one) => fixture.pixels(part(one))));
    await graph.getByRole('button', { name: 'Zoom in' }).click();
    for (const [n, one] of parts.entries()) await expect.poll(() => fixture.pixels(part(one))).not.toBe(before[n]); // prettier-ignore
    await graph.getByRole('button', { name: 'Show all' }).click();
    for (const [n, one] of parts.entries()) await expect.poll(() => fixture.pixels(part(one))).toBe(before[n]); // prettier-ignore
    await graph.getByText(/Both have the same nodes\.$/).waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    await graph.getByRole('radio', { name: 'Table' }).check();
    const nodes = graph.getByRole('table', { name: 'Nodes of the graph' }).locator('tbody tr');
    await nodes.first().waitFor();
    const shown = await nodes.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent))); // prettier-ignore
    for (const [column, phase] of [
      [2, 'prompt'],
      [3, 'generate'],
    ] as const) {
      const steps = await countOf('count(*)', `phase = '${phase}'`);
      const { rows: ops } = await fixture.get<Breakdown>(`breakdown?by=op&phase=${phase}&layers=1&limit=1000`); // prettier-ignore
      const texts = ops.map(({ name, all }) => `${name} ${formatBytes(Math.round((all.bytes_read + all.bytes_written) / steps))}`); // prettier-ignore
      const cells = shown.filter((row) => row[column] !== '–').map((row) => `${row[0] ?? ''} ${row[column] ?? ''}`); // prettier-ignore
      expect(cells.toSorted()).toEqual(texts.toSorted());
    }
    // The first layer reads the embeddings, another one what the layer before it wrote.
    await fixture.show(session, 'full=compare', 'p.compare=of:layers,b:2');
    await graph.getByRole('heading', { name: 'Graph of layers 0 and 2' }).waitFor();
    await graph.getByText(/1 node only in layer 0, 1 node only in layer 2: framed/).waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await graph.getByRole('radio', { name: 'Graph' }).check();
    await expect.poll(() => fixture.pixels(part('difference'))).not.toBe(0);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390); // prettier-ignore
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('compares two layers, and names what only one of them has', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(24);
    await fixture.show(session, 'full=compare', 'p.compare=of:layers,a:0,b:2');
    const of = (layer: number) => sideOf(session, `by=op_kind&phase=generate&layers=${layer}`, 1, median); // prettier-ignore
    const [left, right] = [await of(0), await of(2)];
    await expectRows(left, right, formatNs);
    await panel()
      .getByRole('button', { name: /^op time, op types/ })
      .click();
    await panel().getByRole('radio', { name: 'tensors' }).check();
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.hash.get('p.compare')).toBe('of:layers,b:2,by:tensor');
    // The same tensors of both layers are one row, on a busy machine not always one of the first.
    const names = async () => {
      await showAll();
      return (await rows()).map(([name]) => name);
    };
    await expect.poll(names).toContain('blk.*.attn_q.weight');
    const label = panel().getByLabel('with layer');
    await label.fill('0');
    await label.press('Enter');
    await page.keyboard.press('Tab');
    await panel()
      .getByText(/^No difference: layer 0 and layer 0/)
      .waitFor();
  });

  it('shows two steps as maps by layer, with one cursor', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(24);
    await fixture.show(session, 'full=compare', 'p.compare=of:steps,a:3,b:9');
    const heats = await Promise.all([3, 9].map((step) => heatOf(session, `x=layer&y=op_kind&value=time&from_step=${step}&to_step=${step + 1}`))); // prettier-ignore
    const parts = ['left', 'right', 'difference'];
    for (const part of parts) await mapOf(part).locator('canvas').waitFor();
    const tip = (part: string) => mapOf(part).locator('.chart-tip');
    const marks = () => Promise.all(parts.map((part) => mapOf(part).locator('.chart-mark').evaluate((mark: HTMLElement) => mark.style.top))); // prettier-ignore
    await mapOf('left').getByRole('application').focus();
    for (const key of ['Home', 'ArrowRight']) {
      await page.keyboard.press(key);
      const layer = key === 'Home' ? 0 : 1;
      await expect.poll(() => mapOf('right').locator('.chart-tip dt').innerText()).toBe(`layer ${layer}`); // prettier-ignore
      const name = (await tip('left').locator('b').innerText()).replace(/^op type /, '');
      const [mine = 0, others = 0] = heats.map(({ cells, x, y }) => cells[y.rows.indexOf(name)]?.[x.rows.indexOf(String(layer))] ?? 0); // prettier-ignore
      const shown = await Promise.all(parts.map((part) => tip(part).locator('dd').innerText()));
      expect(shown).toEqual([mine, others, others - mine].map((value) => formatValue('ns', value)));
      expect(new Set(await marks()).size).toBe(1);
    }
    // Only the map with the cursor is read out.
    expect(await panel().getByRole('status').count()).toBe(1);
    await page.keyboard.press('Escape');
    for (const part of parts) await tip(part).waitFor({ state: 'detached' });
    // The pointer moves it, too.
    const chart = mapOf('difference').getByRole('application');
    await chart.scrollIntoViewIfNeeded();
    await chart.hover({ position: { x: 0.3 * ((await chart.boundingBox())?.width ?? 0), y: 14 } });
    for (const part of parts) await tip(part).waitFor();
    const table = await mapRows('right');
    expect(table.size).toBeGreaterThan(3);
    const [, right] = heats;
    for (const [name, cells] of table) {
      const values = right?.cells[right.y.rows.indexOf(name)] ?? [];
      expect(cells, name).toEqual(values.map((value) => formatValue('ns', value)));
    }
  });

  it('shows two layers as maps of the same tensors, by token', async () => {
    const session = await fixture.recorded(24);
    await fixture.show(session, 'full=compare', 'p.compare=of:layers,a:0,b:2,by:tensor');
    for (const [part, layer] of [['left', 0], ['right', 2]] as const) {
      await mapOf(part).locator('canvas').waitFor();
      const heat = await heatOf(session, `x=token&y=tensor&value=time&phase=generate&layers=${layer}`); // prettier-ignore
      const columns = heat.cells[0]?.length ?? 0;
      const first = Array.from({ length: columns }, (_, n) => n).findIndex((n) => heat.cells.some((row) => (row[n] ?? 0) > 0)); // prettier-ignore
      const rows = await mapRows(part);
      const own = heat.y.rows.filter((name) => rows.has(withoutLayer(name, layer)));
      expect(own.length).toBeGreaterThan(10);
      for (const name of own) {
        const values = heat.cells[heat.y.rows.indexOf(name)]?.slice(first) ?? [];
        expect(rows.get(withoutLayer(name, layer)), name).toEqual(values.map((value) => formatValue('ns', value))); // prettier-ignore
      }
    } // prettier-ignore
  });
});
