// The table beside the map: the sums of each preset against REST, its columns, its order.
import { describe, expect, it } from 'vitest';
import type { Breakdown } from '../../../src/net/types';
import { PRESETS } from '../../../src/panels/map/map_options';
import { STATE_NAMES } from '../../../src/panels/map/residency';
import { axisName, sumText, valueName } from '../../../src/panels/map/units';
import { mapPanel } from '../support/map_panel';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const { map, preset, heatmap, tableRows, columnOf } = mapPanel(fixture);

describe('a preset', () => {
  it('has the sums of REST', async () => {
    await fixture.recorded(12);
    await map().getByRole('checkbox', { name: 'Totals' }).check();
    const own = PRESETS.filter(({ experts, options }) => !experts && options.y !== 'memory');
    for (const { title, options } of own) {
      const { y, value } = options;
      await preset(title);
      // The rows of the file are its tensors, also those that are repacked: which ones depends on
      // the processor.
      const axis = y === 'file' ? 'y=tensor&kind=weight' : `y=${y}`;
      const picture = await heatmap(`x=all&${axis}&value=${value}&height=4096`);
      const named = picture.y.rows.map((row, i): [string, number] => [
        y === 'layer' && row === 'none' ? 'emb+out' : row,
        picture.cells[i]?.[0] ?? 0,
      ]);
      const [largest] = [...named].sort((a, b) => b[1] - a[1]);
      if (!largest) throw new Error('no rows');
      await expect
        .poll(async () => (await tableRows()).get(largest[0]), { message: title })
        .toBe(sumText(value, largest[1]));
      const shown = await tableRows();
      expect(shown.size, title).toBeGreaterThan(3);
      for (const [name, text] of shown) {
        const sum = named.filter(([row]) => row === name).map(([, one]) => one);
        // Sums of 32-bit pixels may round differently.
        const near = [1 - 1e-5, 1, 1 + 1e-5].map((one) => sumText(value, one * (sum[0] ?? 0)));
        if (sum.length === 1) expect(near, `${title} ${name}`).toContain(text);
      }
    }
  });
});

describe('the table', () => {
  it('has the heads of what is shown, from preset to preset', async () => {
    await fixture.recorded(6);
    await map().getByRole('checkbox', { name: 'Totals' }).check();
    // What is in memory is known in some systems only.
    const states: readonly string[] = Object.values(STATE_NAMES);
    const heads = async () =>
      (await map().getByRole('columnheader').allInnerTexts())
        .map((head) => head.replace(/[ ↑↓]+$/, ''))
        .filter((head) => !states.includes(head));
    const presets = PRESETS.filter(({ experts }) => !experts);
    for (const { title, options } of [...presets, ...presets.toReversed()]) {
      await preset(title);
      const { x, y, value } = options;
      const row = y === 'file' || y === 'memory' ? 'tensor' : axisName(y);
      await expect
        .poll(heads, { message: title })
        .toEqual([
          row,
          valueName(value),
          ...(x === 'step' ? ['median, generated', 'p5', 'p95'] : []),
          'share in view',
        ]);
      const names = [...(await tableRows()).keys()];
      if (y === 'layer') expect(names).toContain('emb+out');
    }
  });

  it('has the median of each row that the totals have, of the same steps', async () => {
    await fixture.recorded(12);
    await map().getByRole('checkbox', { name: 'Totals' }).check();
    const { rows } = await fixture.get<Breakdown>('breakdown?by=layer&step_times=true');
    const median = rows.find(({ name }) => name === '0')?.step_ns?.median ?? 0;
    expect(median).toBeGreaterThan(0);
    const row = map().locator('.map-table .vgrid-row:not([hidden])', {
      has: fixture.page.getByText('0', { exact: true }),
    });
    await expect
      .poll(() => row.locator('.vgrid-cell').nth(2).innerText())
      .toBe(sumText('time', Math.fround(median)));
  });
});

describe('the figures of the rows', () => {
  interface Figures {
    readonly y: { readonly rows: readonly string[] };
    readonly cells: readonly (readonly number[])[];
    readonly row_figures: Readonly<Record<'mean' | 'median' | 'p5' | 'p95', readonly (number | null)[]>> & {
      readonly phase: string;
      readonly units: number;
    };
  } // prettier-ignore
  const figures = (query: string) =>
    fixture.get<Figures>(`heatmap?row_figures=true&width=1&height=4096&${query}`);
  // By row: sum, median, p5 and p95 as the table writes them.
  const texts = ({ y, cells, row_figures: of }: Figures, value: 'time' | 'bytes') =>
    Object.fromEntries(
      y.rows.map((name, row) => [
        y.rows.length < 20 && name === 'none' ? 'emb+out' : name,
        [
          sumText(value, Math.fround(cells[row]?.[0] ?? 0)),
          ...[of.median[row], of.p5[row], of.p95[row]].map((one) =>
            typeof one === 'number' ? sumText(value, one) : '',
          ),
        ],
      ]),
    );
  const shown = async () =>
    Object.fromEntries(
      await map()
        .locator('.map-table .vgrid-row:not([hidden])')
        .evaluateAll((all) =>
          all.map((row) => {
            const [name = '', ...cells] = [...row.children].map((cell) => cell.textContent);
            return [name, cells.slice(0, 4)] as const;
          }),
        ),
    );

  // Nearest rank, as docs/glossary.md words it.
  const quantile = (values: readonly number[], q: number): number | null =>
    values.toSorted((a, b) => a - b).find((_, i, { length }) => (i + 1) / length >= q) ?? null;

  interface StepOfSql {
    readonly step: number;
    readonly isUsual: boolean;
    readonly isClean: boolean;
  }
  // The generated steps in a range, and which of them have the times of the model: from SQL.
  const generatedSteps = async (from: number, to: number): Promise<readonly StepOfSql[]> => {
    const { rows } = await fixture.sql<[number, string, string | null, number, number]>(
      `SELECT step, timing, verdict, dropped, aborted FROM step
       WHERE phase = 'generate' AND step >= ${from} AND step < ${to} ORDER BY step`,
    );
    return rows.map(([step, timing, verdict, dropped, aborted]) => ({
      step,
      isUsual: step > 0 && timing !== 'learned' && timing !== 'none' && !dropped && !aborted,
      isClean: verdict === null || verdict === 'clean',
    }));
  };

  it.each([
    ['time', 'SELECT step, op_layer_id, sum(duration_ns) FROM op GROUP BY 1, 2'],
    ['bytes', 'SELECT step, op_layer_id, sum(size_bytes) FROM access GROUP BY 1, 2'],
  ] as const)('are those of REST and of SQL, of everything and of a part: %s', async (value, sql) => {
    const session = await fixture.recorded(24);
    const { rows } = await fixture.sql<[number, number | null, number]>(sql);
    for (const [camera, from, to] of [['', 0, 1000], [',cx:5:17', 5, 17]] as const) {
      const part = camera === '' ? '' : `&x_from=${from}&x_to=${to}`;
      const answer = await figures(`x=step&y=layer&value=${value}${part}`);
      const steps = await generatedSteps(from, to);
      const usual = steps.filter(({ isUsual }) => isUsual);
      const clean = usual.filter(({ isClean }) => isClean);
      const used = value === 'bytes' ? steps : clean.length > 0 ? clean : usual;
      expect(used.length).toBeGreaterThan(5);
      expect(answer.row_figures).toMatchObject({ phase: 'generate', units: used.length });
      answer.y.rows.forEach((name, row) => {
        const layer = name === 'none' ? null : Number(name);
        const own = rows.filter(([, of]) => of === layer);
        const values = used.flatMap(({ step }) => own.find(([at]) => at === step)?.[2] ?? []);
        const { mean, median, p5, p95 } = answer.row_figures;
        const message = `${value} of layer ${name} ${camera}`;
        expect(median[row], message).toBe(quantile(values, 0.5));
        expect(p5[row], message).toBe(quantile(values, 0.05));
        expect(p95[row], message).toBe(quantile(values, 0.95));
        expect(mean[row], message).toBeCloseTo(values.reduce((a, b) => a + b, 0) / values.length, 2);
        const inRange = own.filter(([step]) => step >= from && step < to);
        expect(answer.cells[row]?.[0], message).toBe(inRange.reduce((sum, [, , one]) => sum + one, 0));
      });
      await fixture.show(session, `p.map=v:${value},table${camera}`);
      await expect.poll(shown, { message: camera }).toEqual(texts(answer, value));
    }
  }); // prettier-ignore

  it.each([
    'x=token&y=layer&value=bytes',
    'x=token&y=tensor&value=time',
    'x=step&y=op_kind&value=time&phase=prompt',
  ])('are those of REST: %s', async (query) => {
    const session = await fixture.recorded(24);
    const [x, y, value] = ['x', 'y', 'value'].map((name) => new URLSearchParams(query).get(name));
    const phase = new URLSearchParams(query).get('phase');
    await fixture.show(
      session,
      `p.map=y:${y ?? ''},x:${x ?? ''},v:${value ?? ''},table`,
      ...(phase === null ? [] : [`ph=${phase.slice(0, 1)}`]),
    );
    const expected = texts(await figures(query), value === 'time' ? 'time' : 'bytes');
    // As many rows as have room are in the document.
    await expect.poll(async () => Object.entries(await shown()).length).toBeGreaterThan(3);
    await expect
      .poll(async () => {
        const rows = await shown();
        return Object.keys(rows).filter((name) => String(expected[name]) !== String(rows[name]));
      })
      .toEqual([]);
  });

  it('beside the map are the medians of times and the means of bytes', async () => {
    const session = await fixture.recorded(24);
    for (const value of ['time', 'bytes'] as const) {
      await fixture.show(session, `p.map=v:${value}`);
      const { y, row_figures: of } = await figures(`x=step&y=layer&value=${value}`);
      const row = y.rows.indexOf('2');
      const at = await columnOf(6, 2);
      await fixture.page.mouse.move(at.x, at.y);
      await expect
        .poll(() => map().locator('.plane-figure').innerText())
        .toBe(sumText(value, (value === 'time' ? of.median : of.mean)[row] ?? 0));
    }
  });

  it('are of the whole session when a run has ended', async () => {
    await fixture.runText('There was a figure', 200);
    await map().getByRole('checkbox', { name: 'Totals' }).check();
    await map().getByRole('columnheader', { name: 'median, generated' }).waitFor();
    await fixture.waitDone();
    const answer = await figures('x=step&y=layer&value=time');
    expect(answer.row_figures.units).toBeGreaterThan(10);
    await expect.poll(shown).toEqual(texts(answer, 'time'));
  });
});

describe('the table of a disturbed session', () => {
  it('is sorted by the median, and says how many steps are disturbed', async () => {
    const { page } = fixture;
    await page.route('**/conditions', async (route) => {
      const answer = await route.fetch();
      const body = (await answer.json()) as object;
      const steps = { clean: 9, contended: 3, throttled: 0, disk: 0, unknown: 0 };
      await route.fulfill({ json: { ...body, verdict: 'contended', steps } });
    });
    await fixture.recorded(12);
    await map().getByRole('checkbox', { name: 'Totals' }).check();
    const table = map().locator('.map-table');
    await table.getByText('The machine disturbed 3 of 12 steps.').waitFor();
    await table.locator('[aria-sort=descending]', { hasText: 'median' }).waitFor();
    await table.getByRole('button', { name: 'Only clean steps' }).click();
    await expect.poll(() => fixture.filter.inputValue()).toBe('verdict:clean');
    await expect.poll(() => table.getByText('The machine disturbed').count()).toBe(0);
  });
});

describe('a session of which no step is clean', () => {
  it('cannot be filtered for clean steps, and says why', async () => {
    const { page } = fixture;
    await page.route('**/conditions', async (route) => {
      const answer = await route.fetch();
      const body = (await answer.json()) as object;
      const steps = { clean: 0, contended: 12, throttled: 0, disk: 0, unknown: 0 };
      await route.fulfill({ json: { ...body, verdict: 'contended', steps } });
    });
    const session = await fixture.recorded(12);
    await fixture.show(session);
    const box = fixture.inspector.getByRole('checkbox', { name: 'Only clean steps: there are none' }); // prettier-ignore
    await box.waitFor();
    expect(await box.isDisabled()).toBe(true);
    await fixture.inspector.getByText('The machine disturbed all 12 steps: nothing would be left.').waitFor(); // prettier-ignore
    await map().getByRole('checkbox', { name: 'Totals' }).check();
    const button = map().locator('.map-table').getByRole('button', { name: 'Only clean steps' });
    expect(await button.isDisabled()).toBe(true);
    // A link with the filter can be left again.
    await fixture.show(session, 'q=verdict:clean');
    await fixture.inspector
      .getByRole('checkbox', { name: /^Only clean steps: leaves out/ })
      .uncheck();
    await expect.poll(() => fixture.filter.inputValue()).toBe('');
  });
});

describe('the rows by head', () => {
  interface Heads {
    readonly heads: number;
    readonly weights: readonly {
      readonly layer: number;
      readonly heads: readonly { readonly bytes_read: number }[];
    }[];
  }

  it('are the heads of each layer with the sums of REST, also from a link', async () => {
    await fixture.runTextToEnd('By head', 8);
    await map().getByRole('combobox', { name: 'Rows' }).selectOption('head');
    await map().getByRole('combobox', { name: 'Colour' }).selectOption('bytes');
    await map().getByRole('checkbox', { name: 'Totals' }).check();
    await expect.poll(() => fixture.hash.get('p.map')).toBe('y:head,v:bytes,table');
    const picture = await heatmap('x=all&y=head&value=bytes&height=4096');
    const name = 'blk.1 head 2';
    const sum = picture.cells[picture.y.rows.indexOf(name)]?.[0] ?? 0;
    // The weights of the head alone are less than it: it also shares the caches.
    const heads = await fixture.get<Heads>('heads');
    const ofWeights = heads.weights
      .filter(({ layer, heads: all }) => layer === 1 && all.length > 0)
      .reduce((all, weight) => {
        const sharing = heads.heads / weight.heads.length;
        return all + (weight.heads[Math.floor(2 / sharing)]?.bytes_read ?? 0) / sharing;
      }, 0);
    const cached = await fixture.sql<[number]>(
      `SELECT sum(size_bytes) FROM access WHERE memory_source = 'kv' AND layer_id = 1`,
    );
    expect(sum).toBeCloseTo(ofWeights + (cached.rows[0]?.[0] ?? 0) / heads.heads, 3);
    await expect.poll(async () => (await tableRows()).get(name)).toBe(sumText('bytes', sum));
    await fixture.fresh(fixture.page.url());
    await fixture.ops.waitFor();
    await expect.poll(async () => (await tableRows()).get(name)).toBe(sumText('bytes', sum));
  });
});
