// The captured values of a run: the list, one output as histogram and picture, and the files are those of
// the SQL table of values, which reads the session itself.
import { readFile } from 'node:fs/promises';
import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { formatBytes } from '../../../src/format';
import { floatText, shortText } from '../../../src/panels/weights/value_text';
import { decodeValues } from '../../../src/panels/values/values_options';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const panel = (): Locator => fixture.page.getByRole('tabpanel', { name: 'Values' });
const grid = (): Locator => panel().getByRole('grid', { name: 'Captured values' });
const readout = (): Locator => panel().locator('.weights-foot').getByRole('status');
const options = () => decodeValues(fixture.hash.get('p.values') ?? '');

// Outputs, largest values and the attention weights of some layers.
const CAPTURE = { capture: ['^l_out', '^ffn_out@K4', 'attention@L0'] };

interface Value {
  readonly step: number;
  readonly op: number;
  readonly name: string;
  readonly shape: readonly number[];
  readonly min: number;
  readonly max: number;
  readonly norm: number;
  readonly elements: readonly number[];
}

async function valuesOfSql(where = ''): Promise<readonly Value[]> {
  type Row = readonly [number, number, string, number, number, number, number, number, number, number, string]; // prettier-ignore
  const { rows } = await fixture.sql<Row>(
    `SELECT step, op, tensor_name, ne0, ne1, ne2, ne3, output_min, output_max, output_norm, elements FROM value ${where} ORDER BY step, op`,
  );
  return rows.map(([step, op, name, ne0, ne1, ne2, ne3, min, max, norm, elements]) => ({
    step, op, name, shape: [ne0, ne1, ne2, ne3], min, max, norm, elements: JSON.parse(elements) as number[],
  })); // prettier-ignore
}

const shownRows = (): Promise<readonly (readonly string[])[]> =>
  grid()
    .locator('.vgrid-row')
    .evaluateAll((all) =>
      all
        .filter((row) => !(row as HTMLElement).hidden)
        .map((row) => [...row.children].map((cell) => cell.textContent)),
    );

// The array of a .npy file of 32-bit floats.
function arrayOf(npy: Buffer): { readonly shape: string; readonly values: readonly number[] } {
  expect(npy.subarray(0, 6).toString('latin1')).toBe('\x93NUMPY');
  const begin = 10 + npy.readUInt16LE(8);
  const header = npy.subarray(10, begin).toString();
  expect(header).toContain("'descr': '<f4', 'fortran_order': False");
  const values = Array.from({ length: (npy.length - begin) / 4 }, (_, i) => npy.readFloatLE(begin + 4 * i)); // prettier-ignore
  return { shape: /\((.*)\)/.exec(header)?.[1] ?? '', values };
}

async function saved(button: string): Promise<Buffer> {
  const waiting = fixture.page.waitForEvent('download');
  await panel().getByRole('button', { name: button }).click();
  return readFile(await (await waiting).path());
}

describe('the captured values', () => {
  it('are listed with the figures of SQL, in any order', async () => {
    const session = await fixture.recorded(3, CAPTURE);
    await fixture.show(session, 'full=values');
    const values = await valuesOfSql();
    const bytes = values.reduce((sum, { elements }) => sum + 4 * elements.length, 0);
    await panel()
      .getByText(`${values.length} outputs, ${formatBytes(bytes)}. Enter`)
      .waitFor();
    const shown = await shownRows();
    const titles = await grid().getByRole('columnheader').allInnerTexts();
    const cell = (row: readonly string[], title: string): string =>
      row[titles.findIndex((one) => one.trim() === title)] ?? '';
    expect(shown.length).toBeGreaterThan(5);
    shown.forEach((row, i) => {
      const of = values[i];
      expect(cell(row, 'step')).toBe(String(of?.step));
      expect(cell(row, 'op')).toBe(String(of?.op));
      expect(cell(row, 'values')).toBe(of?.name);
      for (const figure of ['min', 'max', 'norm'] as const)
        expect(cell(row, figure)).toBe(shortText(of?.[figure] ?? NaN));
    });
    const names = new Set(values.map(({ name }) => name));
    expect([...names]).toEqual(expect.arrayContaining(['l_out-0', 'ffn_out-0.top', 'attention-0']));
    await grid().getByRole('columnheader', { name: 'max', exact: true }).click();
    const largest = values.reduce((most, { max }) => Math.max(most, max), -Infinity);
    await expect.poll(async () => cell((await shownRows())[0] ?? [], 'max')).toBe(shortText(largest)); // prettier-ignore
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('are saved as one array, and all as safetensors', async () => {
    const session = await fixture.recorded(3, CAPTURE);
    const values = await valuesOfSql();
    const of = values.find(({ name }) => name === 'l_out-1');
    if (!of) throw new Error('nothing was captured');
    await fixture.show(session, 'full=values', `p.values=of:${of.step}:${of.op},n:l_out-1,show:histogram`); // prettier-ignore
    await panel()
      .getByText(`norm ${shortText(of.norm)}`)
      .waitFor();
    const npy = arrayOf(await saved('Save as .npy'));
    expect(npy.shape).toBe(`${of.shape[1]}, ${of.shape[0]}, `);
    expect(npy.values.map(Math.fround)).toEqual(of.elements.map(Math.fround));
    await panel().getByRole('radio', { name: 'Outputs' }).check();
    const all = await saved('Save all as .safetensors');
    const size = Number(all.readBigUInt64LE());
    const header = JSON.parse(all.subarray(8, 8 + size).toString()) as Record<string, { data_offsets: [number, number] }>; // prettier-ignore
    expect(Object.keys(header).length).toBe(values.length);
    for (const { step, op, name, elements } of values) {
      const [from, to] = header[`step${step}.op${op}.${name}`]?.data_offsets ?? [0, 0];
      expect(to - from).toBe(4 * elements.length);
      const stored = elements.map((_, i) => all.readFloatLE(8 + size + from + 4 * i));
      expect(stored).toEqual(elements.map(Math.fround));
    }
  });

  it('of an op have a histogram whose counts are those of the values', async () => {
    const session = await fixture.recorded(3, CAPTURE);
    const of = (await valuesOfSql("WHERE tensor_name = 'l_out-0'"))[0];
    if (!of) throw new Error('nothing was captured');
    await fixture.show(session, 'full=values', `p.values=of:${of.step}:${of.op},n:l_out-0,show:histogram`); // prettier-ignore
    const chart = panel().getByRole('region', { name: 'Values' });
    await chart.waitFor();
    const waiting = fixture.page.waitForEvent('download');
    await chart.getByRole('button', { name: 'Save as CSV' }).click();
    const lines = (await readFile(await (await waiting).path(), 'utf8')).trim().split('\n').slice(1);
    const bins = lines.map((line) => line.split(','));
    const froms = bins.map(([from]) => Number(from));
    const counts = bins.map((cells) => Number(cells.at(-1)));
    expect(froms[0]).toBeCloseTo(of.min, 5);
    expect(bins.length).toBe(64);
    // The bin of a value is the last one that begins at or before it.
    const expected = froms.map(() => 0);
    for (const value of of.elements) {
      const at = froms.findLastIndex((from) => from <= value);
      expected[Math.max(0, at)] = (expected[Math.max(0, at)] ?? 0) + 1;
    }
    expect(counts).toEqual(expected);
    expect(await fixture.axeViolations()).toEqual([]);
  }); // prettier-ignore

  it('of a selected op, node or row are opened, zoomed to one value, and read by keys', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(3, CAPTURE);
    const of = (await valuesOfSql("WHERE tensor_name = 'l_out-1'"))[0];
    if (!of) throw new Error('nothing was captured');
    const [columns = 0] = of.shape;
    for (const selected of [`o:${await fixture.outputOf(0, of.op)}`, 'n:l_out-1']) {
      await fixture.show(session, `step=${of.step}`, `sel=${selected}`);
      const section = fixture.inspector.getByRole('region', { name: 'Captured values' });
      await expect.poll(() => section.innerText()).toContain(`norm ${shortText(of.norm)}`);
    }
    await fixture.inspector.getByRole('button', { name: 'Values', exact: true }).click();
    await expect.poll(options).toMatchObject({ of: { step: of.step, op: of.op, output: 'l_out-1' }, show: 'picture' }); // prettier-ignore
    await panel()
      .getByText(/each cell is/)
      .waitFor();
    // Two rows of three values are in view.
    await fixture.show(session, 'full=values', `p.values=of:${of.step}:${of.op},n:l_out-1,show:picture,cx:30:33,cy0:1:3`); // prettier-ignore
    await panel().getByText('each cell is one value').waitFor();
    const box = await panel().locator('.plane-input').boundingBox();
    if (!box) throw new Error('the picture is not shown');
    const value = (row: number, column: number): number => Math.fround(of.elements[row * columns + column] ?? NaN); // prettier-ignore
    await page.mouse.move(box.x + 0.55 * box.width, box.y + 0.25 * box.height);
    await expect.poll(() => readout().innerText()).toContain(`l_out-1[1, 31] = ${floatText(value(1, 31))}`); // prettier-ignore
    await expect.poll(() => panel().locator('.tip').innerText()).toContain(shortText(value(1, 31)));
    // Keys move by one value, and Enter selects it: it is in the link.
    await panel().locator('.plane-input').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await expect.poll(options).toMatchObject({ at: { row: 2, column: 32 } });
    await page.mouse.move(0, 0);
    await expect
      .poll(() => readout().innerText())
      .toContain(`[2, 32] = ${floatText(value(2, 32))}`);
    expect(await fixture.axeViolations()).toEqual([]);
    await panel().getByRole('radio', { name: 'max |value|' }).check();
    await expect.poll(() => options().cells).toBe('max_abs');
    await panel().getByText('each cell is the absolute value of one value').waitFor();
    await panel().getByRole('button', { name: 'Show all values' }).click();
    await expect.poll(() => options().camera.x).toBe(null);
    // Of a cell of several values, the largest: the scale ends with the largest of all.
    const most = of.elements.reduce((max, one) => Math.max(max, Math.abs(one)), 0);
    const cells = await fixture.get<{ largest: number }>(`steps/${of.step}/ops/${of.op}/values/picture?output=l_out-1&value=max_abs&width=7&height=2`); // prettier-ignore
    expect(cells.largest).toBe(Math.fround(most));
  });

  it('say how many outputs did not fit into the budget', async () => {
    const session = await fixture.recorded(3, { capture: ['^l_out'], capture_bytes: 2048 });
    await fixture.show(session, 'full=values');
    const { rows } = await fixture.sql<readonly [number]>('SELECT count(*) FROM value');
    const { rows: all } = await fixture.sql<readonly [number]>("SELECT count(*) FROM op WHERE tensor_name LIKE 'l_out%'"); // prettier-ignore
    const left = (all[0]?.[0] ?? 0) - (rows[0]?.[0] ?? 0);
    expect(left).toBeGreaterThan(1);
    await panel().getByText(`${left} outputs were left out`).waitFor();
  });

  it('say how to capture some', async () => {
    await fixture.recorded(3);
    await fixture.show(fixture.session ?? '', 'full=values');
    const { missing } = await fixture.get<{ missing: string }>('values');
    await panel().getByText(missing).waitFor();
    await panel()
      .getByText(/tt record .* --capture l_out/)
      .waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
  });
});
