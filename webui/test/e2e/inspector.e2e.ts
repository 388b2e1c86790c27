// The inspector: the summary of a run, what matters about a selection, and what reproduces it. All
// figures are compared with REST.
import { describe, expect, it } from 'vitest';
import { exactBytes, exactNs, formatBytes } from '../../src/format';
import type {
  Breakdown,
  Conditions,
  Determinism,
  Reuse,
  Sequentiality,
  Session,
  StepSummary,
} from '../../src/net/types';
import { PageFixture } from './page_fixture';

const fixture = PageFixture.use();
const summary = () => fixture.inspector.getByRole('list', { name: 'Summary' });
const figure = (name: string) => fixture.inspector.locator(`.figure[data-figure="${name}"]`);
const percent = (part: number, whole: number) => (100 * part) / whole;

describe('the summary', () => {
  it('has six sentences within a second of the end, whose figures are those of REST', async () => {
    await fixture.runText('What is the KV cache?', 12);
    await fixture.waitDone();
    const ended = Date.now();
    const sentences = summary().getByRole('button');
    await expect.poll(() => sentences.count(), { interval: 20 }).toBe(6);
    expect(Date.now() - ended).toBeLessThan(1000);
    const texts = await sentences.allInnerTexts();

    const [weights, order, pairs, reuse, all, session, steps] = await Promise.all([
      fixture.get<Breakdown>('breakdown?by=all&kind=weight'),
      fixture.get<Sequentiality>('sequentiality'),
      fixture.get<Determinism>('determinism'),
      fixture.get<Reuse>('reuse'),
      fixture.get<Breakdown>('breakdown?by=op_kind&sort=-time'),
      fixture.get<Session>(''),
      fixture.get<{ steps: StepSummary[] }>('steps?limit=1000'),
    ]);
    const generated = steps.steps.filter(({ phase }) => phase === 'generate').length;
    const bytes = weights.sums.generate.bytes_read / generated;
    const read = all.sums.generate.bytes_read / generated;
    expect(texts[0]).toBe(
      `A generated token reads ${formatBytes(Math.round(read))}, of which ${formatBytes(Math.round(bytes))} are weights (${percent(bytes, session.model?.size ?? 0).toFixed(1)} % of the model file).`,
    );
    // The strip has the same figure.
    const perToken = fixture.page.locator('.strip-figures div', { hasText: 'read per token' });
    expect(await perToken.locator('dd').innerText()).toBe(formatBytes(Math.round(read)));
    const { verdict } = await fixture.get<Conditions>('conditions');
    const [slowest] = all.rows;
    expect(texts[1]).toContain(
      verdict === null || verdict === 'clean'
        ? `${slowest?.name ?? ''} takes ${percent(slowest?.generate.time_ns ?? 0, all.sums.generate.time_ns).toFixed(1)} % of the time`
        : 'cannot be told, because the run was ',
    );
    expect(texts[2]).toContain(
      `${percent(order.sums.sequential_bytes, order.sums.bytes).toFixed(1)} % of the bytes`,
    );
    expect(texts[3]).toContain(
      pairs.same_weights === pairs.pairs
        ? `All ${pairs.pairs} tokens read the same weights`
        : `${pairs.same_weights} of ${pairs.pairs} tokens read the same weights`,
    );
    expect(texts[4]).toMatch(
      all.sums.all.faults === 0 ? /No op waited for the disk|not recorded/ : /waited for the disk/,
    );
    const sizes = reuse.curve.map(({ capacity_bytes }) => formatBytes(capacity_bytes));
    expect(sizes.some((size) => texts[5]?.startsWith(`A cache of ${size} would serve `))).toBe(
      true,
    );
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('leads to the evidence of each sentence', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    const sentences = summary().getByRole('button');
    await expect.poll(() => sentences.count()).toBe(6);
    await sentences.nth(0).click();
    await page.getByRole('grid', { name: 'Totals by tensor' }).waitFor();
    expect(await fixture.filter.inputValue()).toBe('');
    await sentences.nth(1).click();
    await page.getByRole('grid', { name: 'Totals by op type' }).waitFor();
    await sentences.nth(2).click();
    await expect.poll(() => fixture.hash.get('p.map')).toBe('y:file,x:time,v:bytes');
    await sentences.nth(5).click();
    await expect.poll(() => fixture.hash.get('p.map')).toContain('y:memory');
    await page.goBack();
    await expect.poll(() => fixture.hash.get('p.map')).toContain('y:file');
  });
});

describe('a selection', () => {
  it('shows first what matters: size, share, time, with their course', async () => {
    await fixture.recorded(8);
    const graph = await fixture.sql<[string, number]>(
      "SELECT tensor_name, tensor_bytes FROM tensor WHERE template = (SELECT max(template) FROM step) AND tensor_kind = 'weight' ORDER BY tensor_bytes DESC LIMIT 1",
    );
    const [name = '', size = 0] = graph.rows[0] ?? [];
    await fixture.show(fixture.session ?? '', `sel=t:${name}`);
    await expect.poll(() => fixture.inspector.locator('h3').innerText()).toBe(name);
    const session = await fixture.get<Session>('');
    const share = percent(size, session.model?.size ?? 0);
    await expect.poll(() => figure('size').innerText()).toContain(`${share.toFixed(1)} %`);
    expect(await figure('size').locator('b').getAttribute('title')).toBe(exactBytes(size));

    const rest = await fixture.get<Breakdown>('breakdown?by=tensor&limit=10000');
    const row = rest.rows.find((one) => one.name === name);
    await expect
      .poll(() => figure('bytes').locator('b').getAttribute('title'))
      .toBe(exactBytes((row?.all.bytes_read ?? 0) + (row?.all.bytes_written ?? 0)));
    expect(await figure('time').locator('b').getAttribute('title')).toBe(
      exactNs(row?.all.time_ns ?? 0),
    );
    // Who reads it, when.
    await fixture.inspector
      .getByText(/^[A-Z_]+, [\d.]+ .s at /)
      .first()
      .waitFor();
    // A click on the course goes to that step.
    await figure('time')
      .getByRole('button')
      .click({ position: { x: 2, y: 8 } });
    await expect.poll(() => fixture.hash.get('step')).toBe('0');
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('has a flat course if every step does the same, also with more steps than pixels', async () => {
    await fixture.recorded(150);
    await fixture.show(fixture.session ?? '', 'step=140', 'sel=o:100');
    await expect.poll(() => figure('accesses').innerText()).toContain('near the median');
    const line = await figure('accesses').locator('polyline').getAttribute('points');
    const heights = line?.split(' ').map((point) => point.split(',')[1]);
    expect(heights).toHaveLength(120);
    expect(new Set(heights).size).toBe(1);
  });

  it('is copied as REST, SQL and CLI that reproduce it', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await fixture.ops.locator('.vgrid-row').nth(3).click();
    const json = JSON.parse(await fixture.copyAs('JSON')) as {
      step: number;
      op: number;
      duration_ns: number;
    };
    const rest = await fixture.copyAs('REST');
    const ops = await page.evaluate(
      async (url) => (await (await fetch(url)).json()) as { ops: (typeof json)[] },
      rest,
    );
    expect(ops.ops).toHaveLength(1);
    expect(ops.ops[0]).toMatchObject({ step: json.step, op: 3, duration_ns: json.duration_ns });
    const sql = await fixture.copyAs('SQL');
    const answer = await fixture.sql<readonly number[]>(sql);
    expect(answer.rows).toHaveLength(1);
    expect(answer.rows[0]?.[answer.columns.indexOf('duration_ns')]).toBe(json.duration_ns);
    expect(await fixture.copyAs('CLI')).toBe(`tt sql ${fixture.session ?? ''}.ttrace "${sql}"`);
  });

  it('folds the list of all facts', async () => {
    await fixture.recorded(6);
    const facts = fixture.inspector.locator('.all-facts');
    expect(await facts.getByText('vocabulary', { exact: true }).isVisible()).toBe(false);
    await facts.locator('summary').click();
    await facts.getByText('vocabulary', { exact: true }).waitFor();
  });

  it('leads to all accesses of a tensor', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await page.keyboard.press('Control+k');
    await page.keyboard.type('blk.0.ffn_up.weight');
    await page.keyboard.press('Enter');
    await expect
      .poll(() => fixture.inspector.locator('h3').innerText())
      .toBe('blk.0.ffn_up.weight');
    await fixture.inspector.getByRole('button', { name: 'Accesses', exact: true }).click();
    const { rows } = await fixture.sql<[number]>(
      "SELECT count(*) FROM access WHERE tensor_name LIKE '%blk.0.ffn_up.weight%'",
    );
    const grid = page.getByRole('grid', { name: 'Accesses of the session' });
    await expect
      .poll(async () => Number(await grid.getAttribute('aria-rowcount')) - 1)
      .toBe(rows[0]?.[0]);
  });
});
