// Two tokens or two layers of the map beside each other, against REST.
import { describe, expect, it } from 'vitest';
import { plural } from '../../../src/format';
import { rowsThatMatter } from '../../../src/panels/inspector/compare';
import { sumText } from '../../../src/panels/map/units';
import { mapPanel } from '../support/map_panel';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const { heatmap, settled, columnOf } = mapPanel(fixture);

describe('a comparison', () => {
  interface Within {
    readonly total: number;
    readonly rows: readonly {
      readonly name: string;
      readonly left: { readonly time_ns: number } | null;
      readonly right: { readonly time_ns: number } | null;
      readonly difference: { readonly time_ns: number; readonly bytes_read: number };
    }[];
  }
  const section = () => fixture.inspector.getByRole('region', { name: 'Comparison' });
  const rows = async () =>
    section()
      .locator('tbody tr')
      .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));

  it('of two tokens lists their differences, by Shift+click and from a link', async () => {
    const { page } = fixture;
    await fixture.runTextToEnd('Two tokens side by side', 20);
    await fixture.show(fixture.session ?? '', 'p.map=x:token');
    await settled();
    const [left, right] = [await columnOf(2), await columnOf(14)];
    await page.mouse.click(left.x, left.y);
    await expect.poll(() => fixture.hash.get('sel')).toBe('k:2');
    await page.keyboard.down('Shift');
    await page.mouse.click(right.x, right.y);
    await page.keyboard.up('Shift');
    await expect.poll(() => fixture.hash.get('cmp')).toBe('k:14');
    expect(await page.evaluate(() => getSelection()?.toString())).toBe('');
    expect(fixture.hash.get('sel')).toBe('k:2');
    await fixture.inspector.locator('.inspection').getByText('Token 2', { exact: true }).waitFor();
    const choice = section().getByRole('combobox', { name: 'Compare with token' });
    expect(await choice.inputValue()).toBe('14');
    const expected = await fixture.get<Within>('comparison?left_token=2&right_token=14&limit=500');
    const [first] = expected.rows;
    const amounts = expected.rows.map(({ difference }) => difference.time_ns);
    const text = (ns: number | undefined) => sumText('time', ns ?? 0);
    await expect
      .poll(async () => (await rows())[1]?.slice(0, 3))
      .toEqual([first?.name, text(first?.left?.time_ns), text(first?.right?.time_ns)]);
    // Rows that differ, and on demand all.
    const matter = rowsThatMatter(amounts);
    expect(matter).toBeLessThan(expected.total);
    const shown = await rows();
    expect(shown.length).toBe(1 + matter);
    await section()
      .getByText(`and ${plural(expected.total - matter, 'more tensor')} with hardly any difference`)
      .waitFor();
    await section().getByRole('button', { name: 'Show all' }).click();
    await expect.poll(async () => (await rows()).length).toBe(1 + expected.total);
    const names = (await rows()).map(([name]) => name ?? '');
    expect(names.filter((name) => name.startsWith('node_'))).toEqual([]);
    expect(names.filter((name) => name.startsWith('FLASH_ATTN_EXT, layer '))).not.toEqual([]);
    const sign = (first?.difference.time_ns ?? 0) > 0 ? '+' : '−';
    await section().getByRole('columnheader', { name: 'token 14 − token 2' }).waitFor();
    // A bar starts in the middle of its cell, and goes to the left if the token after the minus takes
    // longer. The longest one fills half of the cell.
    const bars = await section()
      .locator('tr:has(.difference-bar)')
      .evaluateAll((all) =>
        all.map((row) => {
          const cell = row.lastElementChild?.getBoundingClientRect() ?? new DOMRect();
          const bar = row.querySelector('.difference-bar')?.getBoundingClientRect();
          const [half, middle] = [cell.width / 2, cell.x + cell.width / 2];
          return bar ? [(bar.left - middle) / half, (bar.right - middle) / half] : [];
        }),
      );
    const shares = amounts.map((ns) => ns / Math.abs(amounts[0] ?? 0));
    expect(shares.slice(0, 4).filter((share) => share !== 0)).toHaveLength(4);
    expect(bars).toHaveLength(expected.total);
    bars.forEach(([from, to], i) => {
      const share = shares[i] ?? 0;
      expect(from, `bar ${i}`).toBeCloseTo(Math.min(0, share), 2);
      expect(to, `bar ${i}`).toBeCloseTo(Math.max(0, share), 2);
    });
    expect((await rows())[1]?.[3]).toBe(sign + text(Math.abs(first?.difference.time_ns ?? 0)));
    // Both are marked in the map, and a link shows the same.
    await page.mouse.move(2, 2);
    const marks = () => fixture.pixels('.plane-overlay');
    await settled();
    const marked = await marks();
    await fixture.fresh(page.url());
    await fixture.ops.waitFor();
    await expect.poll(rows).toEqual(shown);
    await expect.poll(marks).toBe(marked);
    expect(await fixture.axeViolations()).toEqual([]);
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.hash.get('cmp')).toBeNull();
    expect(fixture.hash.get('sel')).toBe('k:2');
    expect(await rows()).toEqual([]);
    await expect.poll(marks).not.toBe(marked);
  });

  it('of two layers names tensors without the layer, in the inspector', async () => {
    await fixture.runTextToEnd('Once upon a time', 8);
    await fixture.fresh(`${fixture.server.url}/#1&session=${fixture.session ?? ''}&l=1&sel=l:1`);
    await section().getByText('Or Shift+click another layer in the map.').waitFor();
    await section().getByRole('combobox', { name: 'Compare with layer' }).selectOption('3');
    await section().getByRole('radio', { name: 'bytes' }).check();
    await expect
      .poll(() => Object.fromEntries(fixture.hash))
      .toMatchObject({
        sel: 'l:1',
        cmp: 'l:3',
        'p.inspector': 'diff:bytes',
      });
    const expected = await fixture.get<Within>('comparison?left_layer=1&right_layer=3&value=bytes');
    await section().getByRole('button', { name: 'Show all' }).click();
    await expect
      .poll(async () => (await rows()).slice(1).map(([name]) => name))
      .toEqual(expected.rows.map(({ name }) => name.replace('(layer -1)', '(layer before)')));
    // Of one generated step: as in the map.
    const picture = await heatmap('x=step&y=layer&value=bytes&phase=generate&width=999&height=99');
    const text = (layer: number) => {
      const steps = (picture.cells[layer] ?? []).filter((bytes) => bytes > 0);
      return sumText('bytes', Math.round(steps.reduce((a, b) => a + b, 0) / steps.length));
    };
    expect((await rows())[0]?.slice(0, 3)).toEqual(['generate step', text(1), text(3)]);
    await section().getByText('Of one generate step: times are medians').waitFor();
    await section().getByRole('columnheader', { name: 'layer 3 − layer 1' }).waitFor();
    expect((await rows()).map(([name]) => name)).toContain('attn_q.weight');
    await section().getByRole('button', { name: 'End the comparison' }).click();
    await expect.poll(() => fixture.hash.get('cmp')).toBeNull();
  });
});
