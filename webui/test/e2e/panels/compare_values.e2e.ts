// The captured values of two sessions: each figure is that of tt compare --values --json, and each cell that of
// REST.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { formatShape } from '../../../src/format';
import type {
  ComparedOutput,
  ComparedValues,
  DebugState,
  ValuesPicture,
} from '../../../src/net/types';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const tt = join(dirname(process.env.TT_SERVER ?? ''), 'tt');
const panel = () => fixture.page.getByRole('tabpanel', { name: 'Compare' });
const chart = (part: string) => panel().locator(`[data-chart=compare_values_${part}]`);
const grid = () => panel().getByRole('grid', { name: 'Compared outputs' });

const BODY = { max_tokens: 3, temperature: 0, level: 'detailed', capture: ['^(l_out|ffn_out)'] };

// The session of the same request in which layer 0 had another output.
async function altered(): Promise<string> {
  const post = (path: string, body: unknown) =>
    fixture.rest<{ id: string }>(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const { id } = await post('generate', {
    prompt: 'Once upon a time',
    seed: 7,
    ignore_eos: true,
    reuse_prefix: false,
    breakpoints: ['^l_out layer 0'],
    ...BODY,
  });
  const path = `generate/${id}/debug`;
  await expect.poll(async () => (await fixture.rest<DebugState>(path)).stop).not.toBeNull();
  await post(path, { change: 'scale 1.01' });
  await post(path, { delete: 1 });
  await post(path, { until: 'breakpoint' });
  await expect
    .poll(async () => (await fixture.rest<{ state: string }>(`generate/${id}`)).state)
    .toBe('done');
  return id;
}

// What the command prints of the files of both sessions.
async function compared(left: string, right: string): Promise<ComparedValues> {
  const folder = await mkdtemp(join(tmpdir(), 'tt-values-'));
  try {
    const files = [];
    for (const id of [left, right]) {
      const answer = await fetch(`${fixture.server.url}/api/v1/sessions/${id}/file`);
      const file = join(folder, `${id}.ttrace`);
      await writeFile(file, new Uint8Array(await answer.arrayBuffer()));
      files.push(file);
    }
    const { stdout } = await promisify(execFile)(tt, ['compare', '--values', '--json', ...files], {
      maxBuffer: 1 << 26,
    });
    return JSON.parse(stdout) as ComparedValues;
  } finally {
    await rm(folder, { recursive: true });
  }
}

// The rows of a table that are drawn: texts and exact values.
const drawn = async (part = grid()): Promise<readonly (readonly (string | null)[])[]> =>
  part
    .locator('.vgrid-row:not([hidden])')
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));

async function tableOf(part: string): Promise<readonly (readonly (string | null)[])[]> {
  await chart(part).getByRole('radio', { name: 'Table' }).check();
  await chart(part).locator('.vgrid-row').first().waitFor();
  return drawn(chart(part));
}

describe('the captured values of two sessions', () => {
  it('are those of tt compare --values', async () => {
    const { page } = fixture;
    const left = await fixture.generate({ ...BODY });
    const right = await altered();
    await fixture.show(left, `with=${right}`, 'full=compare');
    await panel().getByRole('button', { name: 'Compare the captured values' }).click();
    await expect.poll(() => fixture.hash.get('p.compare') ?? '').toContain('of:values');
    const cli = await compared(left, right);
    const first = cli.first_beyond;
    if (!first) throw new Error('nothing differs');
    // What is captured of the changed op is what it computed itself.
    expect(first.tensor_name).toBe('ffn_out-1');
    const found = panel().getByRole('region', { name: 'Compared values' });
    await found.getByText(`First beyond the tolerance: step ${first.step}, op ${first.op}, ${first.operation_type} ffn_out-1`, { exact: false }).waitFor();
    await found.getByText(`${cli.total} outputs compared: ${cli.total - cli.different} identical, ${cli.different} different; ${cli.only_left} only in this session, ${cli.only_right} only in other session.`, { exact: false }).waitFor();

    // The table: the outputs in the order of the ops.
    const short = (value: number | null) => (value === null ? '∞' : String(Number(value.toPrecision(4))));
    const rowOf = (of: ComparedOutput): readonly string[] => [
      String(of.step),
      String(of.op),
      of.operation_type,
      of.tensor_name,
      of.layer_id === null ? '' : String(of.layer_id),
      formatShape(of.shape),
      ...[of.relative_error, of.max_error, of.left, of.right].map(short),
    ];
    expect(await grid().getAttribute('aria-rowcount')).toBe(String(cli.outputs.length + 1));
    const rows = await drawn();
    expect(rows.length).toBeGreaterThan(5);
    expect(rows).toEqual(cli.outputs.slice(0, rows.length).map(rowOf));

    // The chart: how the errors grow.
    await chart('layers').locator('canvas').waitFor();
    const layers = await tableOf('layers');
    expect(layers.map(([layer]) => layer)).toEqual(cli.layers.map(({ layer_id }) => String(layer_id)));
    expect(cli.layers[1]?.relative_error).toBeGreaterThan(0.001);

    // The pictures of the first output beyond the tolerance, then of one that is chosen by keyboard.
    const { step, op, tensor_name: tensor } = first;
    const picture = await fixture.get<ValuesPicture>(`comparison/${right}/values/picture?step=${step}&op=${op}&tensor=${tensor}`);
    for (const side of ['left', 'right', 'difference']) await chart(side).locator('canvas').waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    const cells = await tableOf('left');
    expect(cells.length).toBe(picture.height);
    expect(cells[0]?.slice(1, 6)).toEqual(picture.left.slice(0, 5).map((value) => expect.stringMatching(new RegExp(`^${String(value).slice(0, 4)}`)) as string));
    const second = cli.outputs[cli.outputs.findIndex((one) => one.tensor_name === tensor && one.step === step) + 1];
    await grid().focus();
    await page.keyboard.press('ArrowDown');
    await chart('left').getByRole('heading', { name: `${second?.tensor_name ?? ''} of this session` }).waitFor();
    await expect.poll(() => fixture.hash.get('p.compare') ?? '').toContain('output:');

    // Another tolerance, as of the command.
    await panel().getByRole('combobox', { name: 'tolerance' }).selectOption('0.1');
    const other = await fixture.get<ComparedValues>(`comparison/${right}/values?tolerance=0.1`);
    expect(other.first_beyond?.tensor_name ?? 'none').not.toBe('ffn_out-1');
    await found.getByText(other.first_beyond ? `op ${other.first_beyond.op},` : 'No output differs by more than the tolerance, a relative error of 0.1.', { exact: false }).waitFor();
  }); // prettier-ignore

  it('of sessions without any are none, and the page says how to capture them', async () => {
    const other = await fixture.generate({ prompt: 'Without values', max_tokens: 2 });
    const session = await fixture.recorded(3);
    await fixture.show(session, `with=${other}`, 'full=compare', 'p.compare=of:values');
    await panel().getByText('The sessions have no captured output in common.', { exact: false }).waitFor();
    await panel().getByRole('radio', { name: 'Sessions' }).check();
    await panel().getByRole('region', { name: 'The sessions' }).waitFor();
    expect(await panel().getByRole('button', { name: 'Compare the captured values' }).count()).toBe(0);
  }); // prettier-ignore
});
