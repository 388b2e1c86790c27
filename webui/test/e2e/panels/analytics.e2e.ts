// Analytics of a dense model: every figure is that of SQL or REST; charts select, brush and are saved.
import { describe, expect, it } from 'vitest';
import type { Breakdown, Conditions, Reuse, Roofline, Sequentiality } from '../../../src/net/types';
import { AnalyticsPage, numbers } from '../support/analytics_page';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const analytics = new AnalyticsPage(fixture);
const { card, chart } = {
  card: (id: string) => analytics.card(id),
  chart: (id: string) => analytics.chart(id),
};

// One column of a statement.
const sqlColumn = async (sql: string): Promise<readonly number[]> =>
  (await fixture.sql<[number]>(sql)).rows.map(([value]) => value);

describe('the overview', () => {
  it('has the figures of SQL and REST', async () => {
    await fixture.recorded(24);
    await analytics.open('overview');
    const layers = await analytics.csv('layers');
    expect(numbers(layers, 'sum of time (ns)')).toEqual(
      await sqlColumn(
        'SELECT sum(duration_ns) FROM op_total GROUP BY op_layer_id ORDER BY op_layer_id IS NULL, op_layer_id',
      ),
    );
    expect(numbers(await analytics.csv('step_time'), 'time of a step (ns)')).toEqual(
      await sqlColumn('SELECT duration_ns FROM step ORDER BY step'),
    );
    expect(numbers(await analytics.csv('step_bytes'), 'bytes of a step (bytes)')).toEqual(
      await sqlColumn('SELECT bytes_read + bytes_written FROM step ORDER BY step'),
    );
    const memory = await analytics.csv('disk_buffer');
    expect(memory.map(({ memory: name }) => name)).toEqual(['mapped file', 'other memory']);
    expect(numbers(memory, 'bytes (bytes)')).toEqual(
      await sqlColumn(
        "SELECT sum(size_bytes) FROM access_by_source GROUP BY memory ORDER BY memory = 'BUFFER'",
      ),
    );
    // The medians of each phase that has some; its bytes.
    const parts = await analytics.csv('time_parts');
    const bytesOfParts = await analytics.csv('bytes_parts');
    for (const phase of ['prompt', 'generate'] as const) {
      const { rows } = await fixture.get<Breakdown>(`breakdown?by=component&step_times=true&sort=-time&phase=${phase}`); // prettier-ignore
      const named = (text: string): string => (text === 'kv-cache' ? 'KV cache or state' : text);
      const own = parts.find((row) => row.phase === phase);
      const timed = rows.filter(({ step_ns: times }) => times !== undefined);
      expect(own === undefined, phase).toBe(timed.length === 0);
      for (const { name, step_ns: times } of timed) expect(own?.[`${named(name)} (ns)`]).toBe(String(times?.median)); // prettier-ignore
      const bytes = bytesOfParts.find((row) => row.phase === phase);
      for (const { name, all } of rows) expect(bytes?.[`${named(name)} (bytes)`]).toBe(String(all.bytes_read + all.bytes_written)); // prettier-ignore
    }
    expect(parts.map(({ phase }) => phase)).toContain('generate');
    for (const [id, by] of [['op_types', 'op_kind&sort=-time'], ['kernels', 'kernel&sort=-time'], ['layers', 'layer']] as const) {
      const { rows } = await fixture.get<Breakdown>(`breakdown?by=${by}&step_times=true`);
      expect(numbers(await analytics.csv(id), 'time of a step (ns)'), id).toEqual(
        rows.map(({ step_ns: times }) => times?.median ?? 0),
      );
    } // prettier-ignore
    const opTypes = await analytics.csv('op_types');
    expect(numbers(opTypes, 'sum of time (ns)').toSorted((a, b) => b - a)).toEqual(
      await sqlColumn('SELECT duration_ns FROM op_time ORDER BY duration_ns DESC'),
    );
    // What a generated token reads of the weights.
    const types = await analytics.csv('tensor_types');
    expect(numbers(types, 'read in all steps (bytes)')).toEqual(
      await sqlColumn(
        "SELECT sum(size_bytes) AS bytes FROM access WHERE phase = 'generate' AND tensor_kind = 'weight' AND write = 0 GROUP BY tensor_type ORDER BY bytes DESC",
      ),
    );
    const [generated = 0] = await sqlColumn("SELECT count(*) FROM step WHERE phase = 'generate'");
    expect(numbers(types, 'read in a step (bytes)')).toEqual(
      numbers(types, 'read in all steps (bytes)').map((bytes) => bytes / generated),
    );
    expect(numbers(await analytics.csv('slowest'), 'time (ns)')).toEqual(
      await sqlColumn('SELECT duration_ns FROM step ORDER BY duration_ns DESC LIMIT 12'),
    );
    const { sums } = await fixture.get<Sequentiality>('sequentiality');
    expect(numbers(await analytics.csv('order'), 'bytes (bytes)')).toEqual([
      sums.sequential_bytes,
      sums.bytes - sums.sequential_bytes,
    ]);
    // Of the clean steps; of a phase without one, of the disturbed ones.
    const { phases } = await fixture.get<Conditions>('conditions');
    const { phases: clean } = await fixture.get<Conditions>('conditions?clean=true');
    const spread = await analytics.csv('phase_steps');
    for (const { phase = '', ...row } of spread) {
      const times = clean[phase]?.step_ns ?? phases[phase]?.step_ns;
      expect(row['median (ns)']).toBe(String(times?.median ?? ''));
      expect(row['p95 (ns)']).toBe(String(times?.p95 ?? ''));
    }
    expect(spread).toHaveLength(2);
  });

  it('has a histogram of the durations of ops', async () => {
    await fixture.recorded(8);
    await analytics.open('overview', 'ph=g');
    const rows = await analytics.csv('op_times');
    const { rows: all } = await fixture.sql<[number]>("SELECT duration_ns FROM op WHERE phase = 'generate' AND duration_ns > 0"); // prettier-ignore
    expect(all.length).toBeGreaterThan(300);
    const first = Math.floor(Math.log2(Math.min(...all.map(([ns]) => ns))));
    const least = rows.map((_, i) => 2 ** (first + i)); // no bin is left out
    expect(rows.map((row) => Object.values(row)[0])).toEqual(least.map(String));
    const inBin = (from: number) => all.filter(([ns]) => ns >= from && ns < 2 * from);
    expect(numbers(rows, 'ops')).toEqual(least.map((from) => inBin(from).length));
    expect(numbers(rows, 'time (ns)')).toEqual(
      least.map((from) => inBin(from).reduce((sum, [ns]) => sum + ns, 0)),
    );
  });

  it('compares the session with the others of its model', async () => {
    const others = [await fixture.recorded(12), await fixture.recorded(8)];
    await fixture.recorded(24);
    await analytics.open('overview');
    const speeds = await Promise.all(
      others.map(async (id) => {
        const { speed } = await fixture.rest<{ speed: { first_token_ns: number } }>(`sessions/${id}`); // prettier-ignore
        return speed.first_token_ns;
      }),
    );
    const tile = analytics.panel.locator('[data-tile=first_token]');
    await expect.poll(() => tile.innerText()).toContain('median of 2 other sessions');
    expect(speeds).toHaveLength(2);
  });

  it('leads from a part to its op types and ops, and back', async () => {
    await fixture.recorded(24);
    await analytics.open('overview');
    const legend = card('time_parts').locator('.chart-legend');
    await legend.getByRole('button', { name: 'ffn' }).click();
    await expect.poll(() => fixture.hash.get('q')).toBe('component:ffn');
    await legend.getByRole('button', { name: 'MUL_MAT' }).click();
    await expect.poll(() => fixture.hash.get('q')).toBe('component:ffn op:mul_mat');
    await legend.getByRole('button', { name: 'ffn_up-2' }).click();
    await expect.poll(() => fixture.hash.get('sel')).toBe('o:ffn_up-2');
    const names = Object.keys((await analytics.csv('bytes_parts'))[0] ?? {}).slice(1);
    const ops = await fixture.sql<[string]>(
      "SELECT DISTINCT tensor_name FROM op_total WHERE component = 'ffn' AND operation_type = 'MUL_MAT'",
    );
    expect(names.map((name) => name.replace(' (bytes)', '')).sort()).toEqual(
      ops.rows.map(([name]) => name).sort(),
    );
    await card('time_parts').getByRole('navigation').getByRole('button', { name: 'all' }).click();
    await expect.poll(() => fixture.hash.get('q')).toBeNull();
  });

  it('selects with a click and with Enter, and a drag selects a range in every view', async () => {
    const { page } = fixture;
    await fixture.recorded(24);
    await analytics.open('overview');
    await chart('layers').scrollIntoViewIfNeeded();
    await chart('layers').focus();
    for (const key of ['Home', 'ArrowRight', 'ArrowRight', 'Enter']) await page.keyboard.press(key);
    await expect.poll(() => fixture.hash.get('sel')).toBe('l:2');
    expect(await card('layers').locator('.chart-selected').count()).toBe(1);
    await chart('step_time').scrollIntoViewIfNeeded();
    const box = await chart('step_time').boundingBox();
    if (!box) throw new Error('no chart');
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + 0.4 * box.width, y);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.7 * box.width, y, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => fixture.hash.get('r') ?? '').toMatch(/^step:\d+:\d+$/);
    const [, from, to] = (fixture.hash.get('r') ?? '').split(':').map(Number);
    await expect
      .poll(async () => numbers(await analytics.csv('step_time'), 'step'))
      .toEqual(Array.from({ length: (to ?? 0) - (from ?? 0) }, (_, i) => (from ?? 0) + i));
    // The bars follow the range; the medians of the phases say that they do not.
    const sum = await sqlColumn(`SELECT sum(duration_ns) FROM op WHERE step >= ${from ?? 0} AND step < ${to ?? 0}`); // prettier-ignore
    await expect
      .poll(async () =>
        numbers(await analytics.csv('op_types'), 'sum of time (ns)').reduce((a, b) => a + b, 0),
      ) // prettier-ignore
      .toBe(sum[0]);
    expect(await card('phase_steps').innerText()).toContain('ignores range of step');
    await page.keyboard.press('Escape');
  });

  it('shows each chart as bars, pie, line and table, in the link, and saves it as SVG and PNG', async () => {
    await fixture.recorded(24);
    await analytics.open('overview');
    await card('op_types').getByRole('radio', { name: 'Pie' }).check();
    await expect.poll(() => fixture.hash.get('p.analytics')).toBe('page:overview,op_types:pie'.replace('page:overview,', '')); // prettier-ignore
    const svg = await analytics.saved('op_types', 'SVG');
    expect(svg).toMatch(/^<svg [\s\S]*<path d="M [\s\S]*MUL_MAT[\s\S]*<\/svg>\s*$/);
    expect((await analytics.saved('op_types', 'PNG')).slice(1, 4)).toBe('PNG');
    await card('layers').getByRole('radio', { name: 'Table' }).check();
    const grid = card('layers').getByRole('grid', { name: 'Layers as a table' });
    const median = await fixture.get<{ rows: { name: string; step_ns?: { median: number } }[] }>('breakdown?by=layer&step_times=true'); // prettier-ignore
    const cells = await grid.getByRole('row').nth(1).getByRole('gridcell').all();
    const titles = await Promise.all(cells.map((cell) => cell.getAttribute('title')));
    const shown = titles.map((title) => (title ?? '').replace(/\D/g, ''));
    expect(shown).toContain(String(median.rows[0]?.step_ns?.median));
    await fixture.fresh(fixture.page.url());
    await card('op_types').getByRole('radio', { name: 'Pie' }).waitFor();
    expect(await card('op_types').getByRole('radio', { name: 'Pie' }).isChecked()).toBe(true);
  });
});

describe('the other pages', () => {
  it('roofline: operations are twice the elements of the weights, times and rates those of the totals', async () => {
    await fixture.recorded(24);
    // Not of the prompt and generation together.
    await analytics.open('roofline');
    const rows = await analytics.csv('roofline');
    const up = rows.find(({ op }) => op === 'ffn_up');
    const [elements] = await sqlColumn(
      "SELECT sum(ne0 * ne1) FROM tensor WHERE tensor_name LIKE 'blk.%.ffn_up.weight' GROUP BY template LIMIT 1",
    );
    expect(Number(up?.['operations of a step'])).toBe(2 * (elements ?? 0));
    const intensity = Number(up?.['operations per byte (ops/byte)']) * Number(up?.['bytes from memory (bytes)']); // prettier-ignore
    expect(Math.abs(intensity / (2 * (elements ?? 0)) - 1)).toBeLessThan(1e-6);
    // The same times and rates of op types as in the table and the finding.
    const { rows: kinds, times } = await fixture.get<Breakdown>('breakdown?by=op_kind&step_times=true'); // prettier-ignore
    const first = await analytics.csv('above_bound_kind');
    expect(first).toHaveLength(kinds.filter(({ step_ns: one }) => one !== undefined).length);
    for (const own of first) {
      const total = kinds.find(({ name }) => name === own.op)?.step_ns;
      expect(Number(own['time of a step (ns)'] ?? own['no bound is known (ns)']), own.op).toBe(total?.median); // prettier-ignore
      expect(Math.abs(Number(own['bytes per second (bytes/s)']) / (total?.bytes_per_second ?? 0) - 1), own.op).toBeLessThan(1e-6); // prettier-ignore
    }
    const { text } = await fixture.get<Roofline>('roofline');
    for (const id of ['roofline', 'above_bound_kind', 'above_bound', 'op_rate']) {
      expect(await card(id).innerText(), id).toContain(times?.text);
      expect(await card(id).innerText(), id).toContain(text);
    }
  }); // prettier-ignore

  it('hot and cold: the curve is that of REST, and the slider moves over it', async () => {
    const { page } = fixture;
    await fixture.recorded(24);
    await analytics.open('reuse');
    const curve = await analytics.csv('miss_ratio');
    const sizes = curve.map(({ memory }) => memory).join(',');
    const reuse = await fixture.get<Reuse>(`reuse?sizes=${sizes}`);
    expect(curve).toHaveLength(40);
    for (const policy of ['lru', 'pin', 'belady'] as const) {
      const name = { lru: 'LRU', pin: 'pinned', belady: 'optimal (Belady)' }[policy];
      expect(numbers(curve, `${name} (share)`)).toEqual(
        reuse.curve.map((point) => 1 - point[policy].bytes_saved / reuse.bytes_read),
      );
    }
    const slider = analytics.panel.getByRole('slider');
    await slider.focus();
    await page.keyboard.press('End');
    // The parts that are listed save what the curve says, but for the part that fits only in part.
    const memory = Number(curve.at(-1)?.memory);
    const { parts } = await fixture.get<{
      parts: { tensor: string; memory_bytes: number; saved_bytes: number; size_bytes: number; reads: number }[];
    }>('pin-order?limit=10000'); // prettier-ignore
    const fit = parts.filter(({ memory_bytes }) => memory_bytes <= memory).length;
    await expect
      .poll(() => analytics.panel.getByText(/^Pinned: /).innerText())
      .toContain(`Pinned: ${fit} of ${parts.length} parts`);
    for (const { capacity_bytes, pin } of reuse.curve) {
      const next = parts.findIndex(({ memory_bytes }) => memory_bytes > capacity_bytes);
      const [whole, part] = [parts[next - 1], parts[next]];
      const rest = part ? (part.reads - 1) * (capacity_bytes - (whole?.memory_bytes ?? 0)) : 0;
      const saved = next < 0 ? (parts.at(-1)?.saved_bytes ?? 0) : (whole?.saved_bytes ?? 0);
      expect(saved + rest).toBe(pin.bytes_saved);
    }
    await page.keyboard.press('Home');
    await expect.poll(() => fixture.hash.get('p.analytics')).toBe(`page:reuse,memory:${curve[0]?.memory ?? ''}`); // prettier-ignore
    await page.keyboard.press('End');
    const first = analytics.panel.getByRole('list', { name: 'Weights to pin' }).getByRole('button').first(); // prettier-ignore
    const name = await first.innerText();
    await first.click();
    await expect.poll(() => fixture.hash.get('sel')).toBe(`t:${name}`);
  });

  it('attention and checks have the figures of REST', async () => {
    await fixture.recorded(24);
    await analytics.open('attention');
    expect((await analytics.states('attention')).filter((one) => !one.endsWith('drawn'))).toEqual(['state_steps empty', 'look_previous empty']); // prettier-ignore
    const kv = await analytics.csv('kv_steps');
    const read = kv.map((row) => Object.entries(row).reduce((sum, [name, value]) => sum + (/^(fresh|cached|other)/.test(name) ? Number(value) : 0), 0)); // prettier-ignore
    expect(read).toEqual(
      await sqlColumn("SELECT sum(size_bytes) FROM access WHERE tensor_kind = 'kv' AND write = 0 GROUP BY step ORDER BY step"), // prettier-ignore
    );
    await analytics.open('checks');
    const repeat = await fixture.get<{ pairs: number; same_weights: number; identical: number }>('determinism'); // prettier-ignore
    const pairs = await analytics.csv('repeat');
    expect(numbers(pairs, 'pairs')).toEqual([repeat.pairs, repeat.same_weights, repeat.identical]); // prettier-ignore
    expect(repeat.pairs).toBeGreaterThan(0);
    const types = await fixture.get<{ types: { bytes: number }[] }>('compression');
    expect(numbers(await analytics.csv('compressed_types'), 'size (bytes)')).toEqual(
      types.types.map(({ bytes }) => bytes),
    );
    const checks = await fixture.get<{ checks: { items_checked: number }[] }>('validation');
    expect(numbers(await analytics.csv('validation'), 'checked')).toEqual(
      checks.checks.map((one) => one.items_checked),
    );
    expect((await analytics.states('checks')).filter((one) => /failed|blank/.test(one))).toEqual(
      [],
    );
  });

  it('attention says how much of the prompt an earlier request had computed', async () => {
    const first = await fixture.generate({ max_tokens: 4, seed: 3 });
    const id = await fixture.generate({ max_tokens: 4, seed: 3, reuse_prefix: true });
    await fixture.show(id);
    await analytics.open('attention');
    const { reused_tokens: reused } = await fixture.rest<{ reused_tokens: number }>(`sessions/${id}`); // prettier-ignore
    expect(reused).toBeGreaterThan(0);
    await expect
      .poll(() => analytics.panel.innerText())
      .toMatch(new RegExp(`${reused} tokens? of the prompt (was|were) reused .*session ${first}`));
  });

  it('a dense model says that it has no experts', async () => {
    await fixture.recorded(24);
    await fixture.show(fixture.session ?? '', 'full=analytics', 'p.analytics=page:experts');
    const { missing } = await fixture.get<{ missing: string }>('experts');
    expect(missing).toContain('the model has no experts');
    await expect.poll(() => analytics.panel.innerText()).toContain(missing);
    expect(await analytics.panel.locator('.chart-card').count()).toBe(0);
  });
});

describe('the panel', () => {
  it('has no violations of accessibility, in both themes and 390 px wide', async () => {
    const { page } = fixture;
    await fixture.recorded(24);
    for (const [scheme, width, pages] of [
      ['dark', 1440, ['overview']],
      ['light', 1440, ['checks']],
      ['dark', 390, ['overview', 'reuse', 'checks']],
    ] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      for (const name of pages) {
        await analytics.open(name);
        expect(await fixture.axeViolations(), `${scheme} ${width} ${name}`).toEqual([]);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        expect(wide, `${width} ${name}`).toBeLessThanOrEqual(width);
        const inner = await analytics.panel.locator('.analytics').evaluate((one) => one.scrollWidth - one.clientWidth); // prettier-ignore
        expect(inner, `${width} ${name}`).toBeLessThanOrEqual(0);
      }
    }
  }); // prettier-ignore
});
