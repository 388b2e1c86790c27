// Everything by keyboard alone.
import { describe, expect, it } from 'vitest';
import type { Locator } from 'playwright-core';
import { formatBytes } from '../../../src/format';
import type { Op, Session, StepSummary, Tensor } from '../../../src/net/types';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();

const hasFocus = (one: Locator): Promise<boolean> =>
  one.evaluateAll((all) => all.some((element) => element === document.activeElement));

// Presses Tab until the element has the focus. Returns the number of stops.
async function tabTo(target: Locator, most = 60, key = 'Tab'): Promise<number> {
  for (let stops = 1; stops <= most; stops += 1) {
    await fixture.page.keyboard.press(key);
    if (await hasFocus(target)) return stops;
  }
  throw new Error(`${most} stops do not reach ${target.toString()}`);
}

// The next Tab begins at the start of the page, as after loading it.
const toStart = () =>
  fixture.page.evaluate(() => {
    document.body.tabIndex = -1;
    document.body.focus();
  });

const PANELS = [
  'Chat',
  'Sessions',
  'Map',
  'Graph',
  'Table',
  'Memory budget',
  'Inspector',
  'Analytics',
  'Compare',
  'Weights',
  'Values',
  'SQL',
  'Debugger',
];

describe('every panel', () => {
  it('is within 13 Tab stops, one per panel, with letter keys off', async () => {
    const { page } = fixture;
    await page.evaluate(() => {
      localStorage.setItem('tensor-trace.settings', JSON.stringify({ letterKeys: false }));
    });
    await page.reload();
    await fixture.recorded(6);
    // The second one is the first one at a zoom of 200 %.
    for (const [width, height] of [
      [1440, 900],
      [720, 450],
    ] as const) {
      // prettier-ignore
      await page.setViewportSize({ width, height });
      for (const name of PANELS) {
        await toStart();
        const link = page.getByRole('button', { name: `Go to ${name}`, exact: true });
        expect(await tabTo(link), `${name} at ${width}`).toBeLessThanOrEqual(PANELS.length);
        expect((await link.boundingBox())?.width, 'it is visible').toBeGreaterThan(40);
        await page.keyboard.press('Enter');
        await expect.poll(() => hasFocus(fixture.tab(name))).toBe(true);
        await page.getByRole('tabpanel', { name, exact: true }).waitFor();
        // The keys of the letters do nothing.
        await page.keyboard.press('f');
        expect(fixture.hash.get('full')).toBeNull();
      }
      expect(await fixture.axeViolations(), `at ${width}`).toEqual([]);
    }
  });
});

describe('a walk', () => {
  it('generates, finds the slowest token, its hottest op, its weight in the file, and all accesses of it', async () => {
    const { page, inspector } = fixture;
    const press = async (...keys: readonly string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await toStart();
    await press('1');
    await tabTo(page.getByRole('textbox', { name: 'Message' }));
    await page.keyboard.type('What is the KV cache?');
    await press('Enter');
    await fixture.waitDone();

    // The slowest token: the generating steps by duration.
    await press('Control+k');
    await page.keyboard.type('only generated tokens');
    await press('Enter', 'Escape', '5');
    await expect.poll(() => hasFocus(fixture.tab('Table'))).toBe(true);
    await tabTo(page.getByRole('radio', { name: 'Ops', exact: true }));
    await press('ArrowRight');
    const steps = page.getByRole('grid', { name: 'Steps of the session' });
    await steps.waitFor();
    const sortBy = async (grid: Locator, title: string): Promise<void> => {
      await tabTo(grid);
      await tabTo(grid.getByRole('columnheader').first().getByRole('button'));
      const header = grid.locator('.vgrid-head button', { hasText: new RegExp(`^${title}$`) });
      while (!(await hasFocus(header))) await press('ArrowRight');
      await press('Enter');
      const cell = header.locator('..');
      await expect.poll(() => cell.getAttribute('aria-sort')).toBe('descending');
      await tabTo(grid, 3, 'Shift+Tab');
    };
    await sortBy(steps, 'duration');
    await press('Home');
    const all = await fixture.get<{ steps: StepSummary[] }>('steps?limit=1000');
    const generated = all.steps.filter(({ phase }) => phase === 'generate');
    const slowest = generated.reduce((a, b) => (b.duration_ns > a.duration_ns ? b : a));
    await expect.poll(() => fixture.hash.get('step')).toBe(String(slowest.step));

    // Its hottest op that reads a weight.
    await tabTo(page.getByRole('radio', { name: 'Steps', exact: true }), 60, 'Shift+Tab');
    await press('ArrowLeft');
    await page.getByRole('grid', { name: `Ops of step ${slowest.step}` }).waitFor();
    await sortBy(fixture.ops, 'duration');
    const { ops } = await fixture.get<{ ops: Op[] }>(`steps/${slowest.step}/ops?limit=1000`);
    const hottest = ops.toSorted((a, b) => (b.duration_ns ?? 0) - (a.duration_ns ?? 0));
    const at = hottest.findIndex(({ sources }) =>
      sources.some(({ tensor_kind: kind, memory_source: memory }) => kind === 'weight' && memory === 'disk'),
    ); // prettier-ignore
    await press('Home');
    for (let row = 0; row < at; row += 1) await press('ArrowDown');
    const op = hottest[at];
    const output = await fixture.outputOf(slowest.step, op?.op ?? -1);
    await expect.poll(() => fixture.hash.get('sel')).toBe(`o:${output}`);

    // Its weight, with its share of the file.
    await press('7');
    const weight =
      op?.sources.find(({ tensor_kind: kind }) => kind === 'weight')?.tensor_name ?? '';
    await tabTo(inspector.locator('button.jump', { hasText: weight }).first());
    await press('Enter');
    await expect.poll(() => inspector.locator('h2').innerText()).toBe(weight);
    expect(fixture.hash.get('sel')).toBe(`t:${weight}`);
    const { tensors } = await fixture.get<{ tensors: Tensor[] }>(
      `templates/${slowest.template ?? 0}/tensors?limit=10000`,
    );
    const bytes = tensors.find(({ tensor_name: name }) => name === weight)?.tensor_bytes ?? 0;
    const session = await fixture.get<Session>('');
    const size = inspector.locator('.figure[data-figure="size"]');
    await expect.poll(() => size.innerText()).toContain(formatBytes(bytes));
    expect(await size.innerText()).toContain(
      `${((100 * bytes) / (session.model?.size ?? 0)).toFixed(1)} %`,
    );

    // All accesses of it.
    await toStart();
    await press('7');
    await tabTo(inspector.getByRole('button', { name: 'Accesses', exact: true }));
    await press('Enter');
    const { rows } = await fixture.sql<[number]>(
      `SELECT count(*) FROM access WHERE phase = 'generate' AND tensor_name LIKE '%${weight}%'`,
    );
    const accesses = page.getByRole('grid', { name: 'Accesses of the session' });
    await expect
      .poll(async () => Number(await accesses.getAttribute('aria-rowcount')) - 1)
      .toBe(rows[0]?.[0]);
  });
});
