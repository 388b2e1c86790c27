// The debugger of the page: a run that stops, is looked at, changed and goes on. REST of the same run
// tells what the page must show.
import { describe, expect, it } from 'vitest';
import type { DebugState, DebugStop, DebugValues, Op, Session } from '../../../src/net/types';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();

const panel = () => fixture.page.getByRole('tabpanel', { name: 'Debugger' });
const bar = () => fixture.page.getByRole('region', { name: 'Debugger', exact: true });
const state = () => fixture.rest<DebugState>(`generate/${fixture.session ?? ''}/debug`);
const values = (query: string) =>
  fixture.rest<DebugValues>(`generate/${fixture.session ?? ''}/debug/values?${query}`);
const button = (name: string) => bar().getByRole('button', { name, exact: true });
const tensors = () => panel().getByRole('list', { name: 'Tensors of the op' });
const breakpoints = () => panel().getByRole('list', { name: 'Breakpoints' });

// Until the page shows the stop that the server has. Returns it.
async function stopped(after = 0): Promise<DebugStop> {
  let stop = null as DebugState['stop'];
  await expect
    .poll(async () => {
      ({ stop } = await state());
      return stop?.number ?? 0;
    })
    .toBeGreaterThan(after);
  if (!stop) throw new Error('the run is not stopped');
  const { op, step, tensor_name: name } = stop.place;
  await expect.poll(() => bar().innerText()).toContain(`step ${step}, op ${op},`);
  expect(await bar().innerText()).toContain(name);
  return stop;
}

// The numbers that the panel shows, exactly.
const shownNumbers = () =>
  panel()
    .getByRole('table', { name: 'Values' })
    .locator('tbody td[title]')
    .evaluateAll((cells) => cells.map((cell) => Number(cell.getAttribute('title'))));

async function run(prompt: string, tokens: number) {
  await fixture.runText(prompt, tokens);
  await expect.poll(() => fixture.session).not.toBeNull();
}

async function add(text: string) {
  await fixture.tab('Debugger').click();
  await panel().getByRole('textbox', { name: 'New breakpoint' }).fill(text);
  await fixture.page.keyboard.press('Enter');
}

async function markOf(name: string) {
  return fixture.ops.locator('.vgrid-row', { hasText: name }).first().getAttribute('data-mark');
}

describe('the debugger', () => {
  it('stops at a row of the table, steps 20 ops, shows values, changes them and says so', async () => {
    const { page } = fixture;
    await fixture.recorded(3);
    const { ops } = await fixture.get<{ ops: Op[] }>('steps/0/ops?limit=1000');
    const name = ops.find((op) => op.operation_type === 'ADD')?.tensor_name ?? '';
    expect(name).not.toBe('');
    await fixture.filter.fill(name);
    const row = fixture.ops.locator('.vgrid-row', { hasText: name }).first();
    await row.click({ position: { x: 8, y: 10 } });
    await expect.poll(() => markOf(name)).toBe('on');
    await fixture.filter.fill('');
    await fixture.tab('Debugger').click();
    await breakpoints().getByText(`^${name}$`).waitFor();

    await run('Once upon a time', 3);
    const first = await stopped();
    expect(first).toMatchObject({ place: { tensor_name: name, step: 0 }, before: false });
    expect(await bar().innerText()).toMatch(/goes on in [45]:\d\d/);
    // Another page that has the session open is told, and may let it go on.
    const other = await page.context().newPage();
    await other.goto(page.url());
    const otherBar = other.getByRole('region', { name: 'Debugger', exact: true });
    await expect.poll(() => otherBar.innerText()).toContain(name);
    await expect.poll(() => otherBar.getByRole('button', { name: 'Continue' }).isEnabled()).toBe(true);

    // 20 ops, each where REST says the run is; and 20 at once, by keyboard. The page may ask for values of a stop that has just ended.
    fixture.expectStatus(409);
    let stop = first;
    for (let i = 1; i <= 20; i += 1) {
      await button('Step op').click();
      stop = await stopped(stop.number);
      expect(stop.place.op).toBe(first.place.op + i);
    }
    await expect.poll(() => otherBar.innerText()).toContain(`op ${stop.place.op},`);
    await other.close();
    const by = bar().getByRole('spinbutton', { name: 'Ops, layers or tokens of a step' });
    await by.focus();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('20');
    await page.keyboard.press('Enter');
    const enter = await stopped(stop.number);
    expect(enter.place.op).toBe(first.place.op + 40);
    expect(await by.evaluate((field) => field === document.activeElement)).toBe(true);
    await by.fill('0'); // not a number of ops
    await button('20 ops').focus();
    expect(await by.inputValue()).toBe('20');
    await by.fill('3');
    await page.keyboard.press('F10');
    stop = await stopped(enter.number);
    expect(stop.place.op).toBe(first.place.op + 43);
    await by.fill('1');
    await button('Step op').waitFor();

    // The values of the output, and of a source.
    for (const { label, unreadable, shape } of stop.tensors) {
      if (unreadable !== null) continue;
      await tensors().getByText(label, { exact: true }).click();
      const rows = shape[1] === 1 ? '' : `0-${Math.min(8, shape[1] ?? 1) - 1},`;
      const outer = shape.slice(2).filter((n) => n > 1).map(() => '0,').join(''); // prettier-ignore
      const part = await values(`tensor=${label}&indices=${outer}${rows}0-${Math.min(8, shape[0] ?? 1) - 1}`);
      await expect.poll(shownNumbers).toEqual(part.values);
      const { statistics } = await values(`tensor=${label}`);
      const norm = panel().locator('.debug-statistics > div', { hasText: 'norm' }).locator('dd');
      expect(Number(await norm.getAttribute('title'))).toBe(statistics.norm);
    }
    await tensors().getByText('output', { exact: true }).click();
    expect(await fixture.axeViolations()).toEqual([]);

    // What if, with the server's words where it is wrong.
    await panel().getByRole('combobox', { name: 'Change' }).selectOption('scale');
    await panel().getByRole('textbox', { name: 'Factor' }).fill('much');
    fixture.expectStatus(409, 400);
    await panel().getByRole('button', { name: 'Change the output' }).click();
    await panel().getByRole('alert').getByText(/much/).waitFor();
    const before = (await values('tensor=output&limit=8')).values.map(Number);
    await panel().getByRole('textbox', { name: 'Factor' }).fill('-2');
    await page.keyboard.press('Enter');
    await panel().getByRole('list', { name: 'Changes so far' }).getByText('scale -2').waitFor();
    expect((await values('tensor=output&limit=8')).values).toEqual(before.map((value) => value * -2));
    await expect.poll(async () => (await shownNumbers()).slice(0, 4)).toEqual(before.slice(0, 4).map((value) => value * -2));

    await panel().getByRole('button', { name: `Remove ^${name}$` }).click();
    await button('Continue').click();
    await fixture.waitDone();
    await expect.poll(() => bar().count()).toBe(0);
    const altered = fixture.page.getByRole('region', { name: 'Altered run' });
    await fixture.tab('Inspector').click();
    const { facts } = await fixture.get<Session>('');
    await altered.getByText(facts?.['altered.0'] ?? '', { exact: true }).waitFor();
    expect(facts?.['altered.0']).toContain('scale -2');
    const listed = page.locator('.session[data-current=true]').getByText('altered', { exact: true });
    await expect.poll(() => listed.getAttribute('title')).toBe(facts?.['altered.0']);

    // No session of the same request: it runs again. Then there is one.
    const session = fixture.session;
    await altered.getByRole('button', { name: 'Compare with the unaltered run' }).click();
    await expect.poll(() => fixture.hash.get('with')).not.toBeNull();
    const plain = fixture.hash.get('with') ?? '';
    expect(fixture.session).toBe(session);
    const compare = page.getByRole('tabpanel', { name: 'Compare' });
    const differs = compare.getByRole('list', { name: 'What differs' });
    await differs.getByText('Changed at a breakpoint in this session:').waitFor();
    await differs.getByText(facts?.['altered.0'] ?? '', { exact: true }).waitFor();
    // What it did to the text is first, the times are after it.
    const lines = await compare.getByRole('region', { name: 'Compared sessions' }).getByRole('paragraph').allInnerTexts();
    expect(lines[0]).toMatch(/^(The first token that differs is token \d+|The change at the breakpoint did not change the text)\.$/);
    expect(lines.at(-1)).toMatch(/token/);
    await compare.getByRole('table', { name: 'Causes of differences' }).getByText(facts?.['altered.0'] ?? '').waitFor();
    expect(await compare.getByText(/breakpoints\.0/).count()).toBe(0);
    const { facts: again } = await fixture.rest<Session>(`sessions/${plain}`);
    expect(again).toMatchObject({ 'request.prompt': 'Once upon a time', 'request.seed': '7' });
    expect(Object.keys(again ?? {}).filter((key) => /^altered|breakpoints/.test(key))).toEqual([]);
    await fixture.show(session ?? '');
    expect(fixture.hash.get('with')).toBeNull();
    await altered.getByRole('button', { name: 'Compare with the unaltered run' }).click();
    await expect.poll(() => fixture.hash.get('with')).toBe(plain);
  }); // prettier-ignore

  it('by keyboard, with the place in graph, table and map', async () => {
    const { page } = fixture;
    await fixture.recorded(3);
    await fixture.tab('Debugger').click();
    await fixture.rows('Ops');
    await fixture.ops.focus();
    for (let i = 0; i < 3; i += 1) await page.keyboard.press('ArrowDown');
    await page.keyboard.press('b');
    await expect.poll(() => breakpoints().locator('li').count()).toBe(1);
    await page.keyboard.press('b');
    await expect.poll(() => breakpoints().locator('li').count()).toBe(0);
    await add('^l_out-1$ step 1-');
    fixture.expectStatus(409); // values of a stop that has just ended
    await run('the old sea', 4);
    const first = await stopped();
    expect(first.place).toMatchObject({ step: 1, tensor_name: 'l_out-1', layer_id: 1 });
    await fixture.rows('Ops');
    // The step before has the same op.
    await expect.poll(() => markOf('l_out-1')).toBe('stopped');
    await expect.poll(() => fixture.hash.get('sel')).toBe('o:l_out-1');
    await fixture.tab('Graph').click();
    await page.locator('.graph[data-drawn="1"]').waitFor();
    await page.keyboard.press('F10');
    const op = await stopped(first.number);
    expect(op.place.op).toBe(first.place.op + 1);
    await page.keyboard.press('F9');
    const layer = await stopped(op.number);
    expect(layer.place.layer_id).not.toBe(op.place.layer_id);
    await page.keyboard.press('Shift+F9');
    const token = await stopped(layer.number);
    expect(token.place).toMatchObject({ step: 2, op: 0 });
    await page.keyboard.press('F8');
    expect((await stopped(token.number)).place.tensor_name).toBe('l_out-1');
    await button('Cancel').click();
    await fixture.progress.getByText(/^Stopped/).waitFor();
    await expect.poll(() => bar().count()).toBe(0);
  });

  it('marks all ops that a breakpoint names: those where the run stops', async () => {
    await fixture.recorded(3);
    await add('op MUL_MAT layer 1 step 1');
    await fixture.filter.fill('layer:1');
    const rows = fixture.ops.locator('.vgrid-row:not([hidden])[data-mark=on]');
    const marked = () => rows.evaluateAll((all) => all.map((one) => one.children[2]?.textContent ?? ''));
    await expect.poll(async () => (await marked()).length).toBeGreaterThan(1);
    // Rows further down are not drawn: the first ones are compared.
    const names = await marked();
    await panel().getByRole('combobox', { name: 'A stop lasts' }).selectOption('30 minutes');
    await run('the old sea', 3);
    const stops: string[] = [];
    let last = 0;
    while (stops.length < names.length) {
      const stop = await stopped(last);
      expect(await bar().innerText()).toMatch(/goes on in (30:00|2\d:\d\d)/);
      expect(stop.place).toMatchObject({ step: 1, layer_id: 1, operation_type: 'MUL_MAT' });
      stops.push(stop.place.tensor_name);
      last = stop.number;
      await button('Continue').click();
    }
    expect(stops).toEqual(names);
    await button('Cancel').click();
    await expect.poll(() => bar().count()).toBe(0);
    // The run went on while the panel read values: the server says that this stop is over.
    fixture.errors = fixture.errors.filter((text) => !/ 409 .*\/debug\/values/.test(text));
  }); // prettier-ignore

  it('keeps a change for all tokens until it is ended, and the session has each step', async () => {
    await add('^l_out-0$');
    await run('the old sea', 4);
    await stopped();
    await panel().getByRole('combobox', { name: 'Change' }).selectOption('scale');
    await panel().getByRole('textbox', { name: 'Factor' }).fill('-2');
    await panel().getByRole('checkbox', { name: 'Keep for all tokens' }).check();
    await panel().getByRole('button', { name: 'Change the output' }).click();
    const kept = panel().getByRole('list', { name: 'Kept changes' });
    await kept.getByText('made in 1 step', { exact: false }).waitFor();
    fixture.expectStatus(409);
    const elements = async (): Promise<readonly number[]> => {
      const { changes } = await state();
      return changes.map((one) => one.elements);
    };
    for (const last of [1, 2]) {
      await button('Continue').click();
      await stopped(last);
      await kept.getByText(`made in ${last + 1} steps`, { exact: false }).waitFor();
    }
    const [prompt, token] = await elements();
    expect(prompt).toBeGreaterThan(token ?? 0);
    const changes = panel().getByRole('list', { name: 'Changes so far' });
    await changes.getByText('steps 1 to 2, op', { exact: false }).waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    await kept.getByRole('button', { name: 'End' }).press('Enter');
    await expect.poll(() => kept.count()).toBe(0);
    await panel().getByRole('button', { name: 'Remove ^l_out-0$' }).click();
    await button('Continue').click();
    await fixture.waitDone();
    const { facts } = await fixture.get<Session>('');
    expect(facts?.['altered.0']).toMatch(new RegExp(`^step 0, .*: scale -2 \\(${prompt} elements\\)$`));
    expect(facts?.['altered.1']).toMatch(new RegExp(`^steps 1 to 2, .*: scale -2 \\(${token} elements each\\)$`));
    expect(facts?.['altered.2']).toBeUndefined();
  }); // prettier-ignore

  it('a right click on a node of the graph sets a breakpoint and removes it', async () => {
    const { page } = fixture;
    await fixture.recorded(3);
    await fixture.tab('Debugger').click();
    await fixture.tab('Graph').click();
    const canvas = page.locator('.graph-base');
    await page.locator('.graph[data-drawn="0"]').waitFor();
    const box = (await canvas.boundingBox()) ?? { width: 0, height: 0 };
    // The first node under the pointer that computes something.
    for (let y = 30; y < box.height && (await breakpoints().locator('li').count()) === 0; y += 12)
      await canvas.click({ button: 'right', position: { x: box.width / 2, y } });
    const [line = ''] = await breakpoints().locator('li .mono').allInnerTexts();
    const selected = fixture.hash.get('sel')?.replace(/^n:/, '') ?? '';
    expect(line).toBe(`^${selected}$`);
    await fixture.tab('Inspector').click();
    const here = page.getByRole('button', { name: 'Breakpoint', exact: true });
    expect(await here.getAttribute('aria-pressed')).toBe('true');
    await here.click();
    await fixture.tab('Debugger').click();
    expect(await breakpoints().locator('li').count()).toBe(0);
  });

  it('shows what the server says of a wrong breakpoint, and fits a small window', async () => {
    const { page } = fixture;
    await add('layer x');
    fixture.expectStatus(422);
    await fixture.runText('the old sea', 3);
    await panel()
      .getByRole('alert')
      .getByText(/is not a range/)
      .waitFor();
    await breakpoints().getByRole('button', { name: 'Edit layer x' }).click();
    await add('^Qcur-0$ layer 0');
    await expect.poll(() => breakpoints().locator('li').count()).toBe(1);
    await breakpoints().getByRole('checkbox').uncheck();
    await panel().getByRole('checkbox', { name: 'Stop before the first op' }).check();
    await fixture.runText('the old sea', 3);
    await expect.poll(() => fixture.session).not.toBeNull();
    const start = await stopped();
    expect(start).toMatchObject({ before: true, place: { step: 0, op: 0 } });
    const first = (name: string) =>
      page.getByRole('tabpanel', { name }).getByText('The run is stopped in its first step.');
    await first('Table').waitFor();
    // The map has rows if the graph of an earlier session of the model is known.
    await first('Map').or(page.getByRole('tabpanel', { name: 'Map' }).locator('canvas')).first().waitFor(); // prettier-ignore
    // A breakpoint that is added to the stopped run is checked at once.
    fixture.expectStatus(400);
    await add('if weight > 3');
    await panel()
      .getByRole('alert')
      .getByText(/weight/)
      .waitFor();
    expect(await breakpoints().locator('li').count()).toBe(1);
    await breakpoints().getByRole('checkbox').check();
    await expect.poll(async () => (await state()).breakpoints.length).toBe(1);
    await page.setViewportSize({ width: 390, height: 844 });
    await fixture.tab('Debugger').click();
    expect(await fixture.axeViolations()).toEqual([]);
    for (const control of await page
      .locator('.debug-bar button, .debug button, .debug input')
      .all()) {
      const place = await control.boundingBox();
      if (place) expect(place.x + place.width).toBeLessThanOrEqual(391);
    }
    await page.emulateMedia({ forcedColors: 'active' });
    const backs = await tensors().locator('button').evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor)); // prettier-ignore
    expect(new Set(backs).size, 'the chosen tensor is marked').toBe(2);
    await button('Continue').click();
    expect((await stopped(start.number)).place.tensor_name).toBe('Qcur-0');
    await button('Cancel').click();
    await expect.poll(() => bar().count()).toBe(0);
  });
});
