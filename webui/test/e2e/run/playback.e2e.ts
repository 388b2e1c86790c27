// Playback on the real server: the position moves strip, map, table, inspector and answer together.
import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { SPEEDS } from '../../../src/state/view/speeds';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();

interface Step {
  readonly step: number;
  readonly phase: string;
  readonly duration_ns: number;
}
interface Op {
  readonly op: number;
  readonly tensor_name: string;
  readonly op_layer_id: number | null;
}

const bar = () => fixture.page.getByRole('region', { name: 'Playback' });
const position = () => bar().locator('.playback-position');
const speed = () => bar().getByRole('combobox', { name: 'Speed' });
const row = () => fixture.ops.locator('.vgrid-row[aria-selected=true]');

// What the views show as the current op or step.
async function shown() {
  const { hash } = fixture;
  return {
    step: hash.get('step'),
    selection: hash.get('sel'),
    table: await row().allInnerTexts(),
    strip: await fixture.pixels('.strip-chart'),
    map: await fixture.pixels('.plane-overlay'),
  };
}

// Runs in the page, for 4 seconds: what each frame shows. `canvases`: their selectors by name.
async function samplesOfFrames(canvases: Readonly<Record<string, string>>) {
  const sumOf = (selector: string): string => {
    const canvas = document.querySelector(selector);
    if (!(canvas instanceof HTMLCanvasElement)) return 'none';
    const { width, height } = canvas;
    const data = canvas.getContext('2d')?.getImageData(0, 0, width, height).data ?? [];
    let sum = 0;
    for (let i = 0; i < data.length; i += 4) {
      const [red = 0, green = 0, blue = 0, alpha = 0] = data.slice(i, i + 4);
      sum = (sum * 31 + red + 3 * green + 5 * blue + 7 * alpha) % 1_000_003;
    }
    const { e: left, f: top } = new DOMMatrix(getComputedStyle(canvas).transform);
    return `${sum} at ${left},${top}`;
  };
  // Observers of sizes run after all callbacks of a frame, before it is painted.
  const box = document.createElement('div');
  box.style.cssText = 'position: fixed; visibility: hidden; height: 1px';
  document.body.append(box);
  let sampled = (): void => undefined;
  new ResizeObserver(() => {
    sampled();
  }).observe(box);
  const samples: Record<string, string>[] = [];
  const begin = performance.now();
  // Beside other programs there are fewer frames: at least those in which it moves to a new step.
  const isMissing = (): boolean => new Set(samples.map((one) => one.step)).size < 3;
  for (let frame = 0; performance.now() - begin < 4000 || isMissing(); frame += 1) {
    const end = new Promise<void>((done) => {
      sampled = done;
    });
    box.style.width = `${10 + (frame % 2)}px`;
    await end;
    const position = document.querySelector('.playback-position')?.textContent ?? '';
    const [, step = '', op = ''] = /step ([\d\s]+) of .*op ([\d\s]+) of/.exec(position) ?? [];
    const number = (text: string): string => text.replace(/\D/g, '');
    samples.push({
      at: `${number(step)}:${number(op)}`,
      step: number(step),
      table: document.querySelector('.vgrid-row[aria-selected=true] > *')?.textContent ?? '',
      word: [...(CSS.highlights.get('token-selected') ?? [])].map(({ startOffset }) => startOffset).join(),
      ...Object.fromEntries(Object.entries(canvases).map(([name, selector]) => [name, sumOf(selector)])),
    }); // prettier-ignore
  }
  box.remove();
  return samples;
}

// Runs in the page: the first and the last picture of a video, as how much the colours of a part differ
// from that of its corner.
async function pictures(base64: string) {
  const video = document.createElement('video');
  video.muted = true;
  const file = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  video.src = URL.createObjectURL(new Blob([file], { type: 'video/webm' }));
  const until = (event: string): Promise<unknown> =>
    new Promise((done, fail) => {
      video.addEventListener(event, done, { once: true });
      video.addEventListener('error', () => {
        fail(new Error(video.error?.message));
      });
    });
  const canvas = document.createElement('canvas');
  const sumsNow = () => {
    canvas.width = video.videoWidth;
    canvas.height = video.videoHeight;
    const ctx = canvas.getContext('2d');
    ctx?.drawImage(video, 0, 0);
    const sumOf = (x: number, y: number, w: number, h: number): number => {
      const { data } = ctx?.getImageData(x, y, w, h) ?? { data: [] };
      let sum = 0;
      for (let i = 0; i < data.length; i += 4) {
        const off = Math.abs((data[i] ?? 0) - (data[0] ?? 0)) + Math.abs((data[i + 2] ?? 0) - (data[2] ?? 0)); // prettier-ignore
        if (off > 60) sum += 1;
      }
      return sum;
    };
    return {
      clock: sumOf(700, 10, 560, 32),
      map: sumOf(24, 84, 1232, 430),
      scale: sumOf(500, 524, 280, 16),
      text: sumOf(24, 552, 1232, 160),
    };
  };
  const ready = until('loadeddata');
  await ready;
  const sums = [sumsNow()];
  const ended = until('ended');
  await video.play();
  await ended;
  sums.push(sumsNow());
  return { width: video.videoWidth, height: video.videoHeight, seconds: video.currentTime, sums };
}

describe('playback', () => {
  it('plays ops in slow motion; all views move; Space pauses', async () => {
    // Not a recording of now: an op that waited for a processor would play for seconds.
    await fixture.example();
    const { steps } = await fixture.get<{ steps: unknown[] }>('steps?limit=1000');
    expect(await speed().locator('option:checked').innerText()).toBe('slow motion');
    await fixture.page.locator('.status').click();
    await fixture.page.keyboard.press(' ');
    await bar().getByRole('button', { name: 'Pause' }).waitFor();
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^o:/);
    const first = await shown();
    expect(first.step).toBe('0');
    await expect.poll(async () => (await shown()).selection).not.toBe(first.selection);
    await fixture.page.keyboard.press(' ');
    await bar().getByRole('button', { name: 'Play' }).waitFor();
    // The table row, the position and the link are those of the op.
    await expect.poll(async () => (await shown()).table.length).toBe(1);
    // The link is written when the position rests.
    await expect
      .poll(async () => {
        const { step, selection } = await shown();
        // Numbers count from 0, as in the link and REST.
        const text = (await position().innerText()).replace(/\s+/g, ' ');
        const [, at, last, op] = /^step (\d+) of 0–(\d+) op (\d+) of 0–/.exec(text) ?? [];
        const output = await fixture.outputOf(Number(at), Number(op));
        return [at === step, Number(last), `o:${output}` === selection];
      })
      .toEqual([true, steps.length - 1, true]);
    const paused = await shown();
    expect(paused.strip).not.toBe(first.strip);
    const name = paused.selection?.slice(2).replace(/~\d+$/, '');
    const { ops } = await fixture.get<{ ops: Op[] }>(`steps/${paused.step ?? ''}/ops?limit=1000`);
    const op = ops.find(({ tensor_name }) => tensor_name === name);
    expect(op).toBeDefined();
    expect(await position().innerText()).toContain(op?.tensor_name);
    await fixture.inspector
      .getByText(op?.tensor_name ?? '', { exact: true })
      .first()
      .waitFor();
    // A link has the position and the speed.
    await expect.poll(() => fixture.hash.get('speed')).toMatch(/^0\.\d+$/);
    await fixture.page.reload();
    await expect.poll(async () => (await shown()).selection).toBe(paused.selection);
    expect(await speed().inputValue()).toBe(fixture.hash.get('speed'));
  });

  it('moves the table and the position in the same frame, 30 times a second', async () => {
    await fixture.recorded(8);
    // The shortest step: in others a busy machine may have interrupted an op for milliseconds,
    // which are played for longer than the samples are taken.
    const { steps } = await fixture.get<{ steps: readonly Step[] }>('steps?limit=1000');
    const shortest = steps
      .filter(({ phase }) => phase === 'generate')
      .reduce((best, step) => (step.duration_ns < best.duration_ns ? step : best));
    await fixture.fresh(`${fixture.page.url()}&step=${shortest.step}&speed=0.0001`);
    await fixture.ops.waitFor();
    await bar().getByRole('button', { name: 'Play' }).click();
    await expect.poll(() => row().count()).toBe(1);
    const samples = await fixture.page.evaluate(async () => {
      const all: (readonly [position: string, table: string])[] = [];
      const begin = performance.now();
      // Beside other programs there are fewer frames.
      while (performance.now() - begin < 2000 || new Set(all.map(([at]) => at)).size <= 5) {
        await new Promise((done) => requestAnimationFrame(done));
        const position = document.querySelector('.playback-position')?.textContent ?? '';
        const chosen = document.querySelector('.vgrid-row[aria-selected=true] > *');
        all.push([
          String(Number(/op ([\d\s]+) of/.exec(position)?.[1]?.replace(/\D/g, ''))),
          chosen?.textContent ?? '',
        ]);
      }
      return all;
    });
    expect(samples.filter(([position, table]) => position !== table)).toEqual([]);
    expect(new Set(samples.map(([position]) => position)).size).toBeGreaterThan(5);
  });

  // What a view shows at a position never depends on the frame: a view that followed a frame later
  // would show the position before in the first frame of each position.
  it.each([
    ['map', 'p.map=y:op,x:time', '.plane-overlay'],
    ['graph', 'tab=graph&p.graph=model', '.graph-base'],
  ] as const)('moves strip, %s, table and answer in the same frame', async (name, part, canvas) => {
    const { page } = fixture;
    await page.emulateMedia({ reducedMotion: 'reduce' }); // the strip does not fade
    await fixture.show(await fixture.example(), 'step=3', 'speed=0.0005', part);
    await fixture.ops.waitFor();
    await expect.poll(() => fixture.pixels(canvas)).not.toBe(0);
    await bar().getByRole('button', { name: 'Play' }).click();
    await expect.poll(() => row().count()).toBe(1);
    const samples = await page.evaluate(samplesOfFrames, { [name]: canvas, strip: '.strip-chart' });
    const seen = (by: 'at' | 'step', view: string): ReadonlyMap<string, ReadonlySet<string>> => {
      const shown = new Map<string, Set<string>>();
      for (const sample of samples) {
        const key = sample[by] ?? '';
        if (sample.step === '') continue; // the bar has no position before the first op
        shown.set(key, (shown.get(key) ?? new Set()).add(sample[view] ?? ''));
      }
      return shown;
    };
    for (const view of ['table', 'strip', name]) {
      const shown = seen('at', view);
      const late = [...shown].filter(([, states]) => states.size > 1).map(([at]) => at);
      expect(late, view).toEqual([]);
      // And it moves.
      const states = new Set([...shown.values()].map((all) => [...all].join()));
      expect(states.size, view).toBeGreaterThan(3);
    }
    const words = seen('step', 'word');
    expect(words.size).toBeGreaterThan(1);
    for (const [step, states] of words) expect(states.size, `word of step ${step}`).toBe(1);
    await page.emulateMedia({ reducedMotion: null });
  });

  it('steps by op, layer and token', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    const outputs: string[] = [];
    for (const op of [0, 1, 2, 3]) outputs.push(`o:${await fixture.outputOf(5, op)}`);
    await fixture.ops.locator('.vgrid-row').nth(2).click();
    await expect.poll(() => fixture.hash.get('sel')).toBe(outputs[2]);
    await page.keyboard.press('.');
    await expect.poll(() => fixture.hash.get('sel')).toBe(outputs[3]);
    await page.keyboard.press(',');
    await page.keyboard.press(',');
    await expect.poll(() => fixture.hash.get('sel')).toBe(outputs[1]);
    await page.keyboard.press('}');
    const step = fixture.hash.get('step') ?? '';
    const { ops } = await fixture.get<{ ops: Op[] }>(`steps/${step}/ops?limit=1000`);
    const first = ops.find((one) => one.op_layer_id === 1);
    const output = `o:${await fixture.outputOf(Number(step), first?.op ?? -1)}`;
    await expect.poll(() => fixture.hash.get('sel')).toBe(output);
    await page.keyboard.press('[');
    await expect.poll(() => fixture.hash.get('step')).toBe(String(Number(step) - 1));
    expect(fixture.hash.get('sel')).toBe(output);
  });

  it('moves the accesses and the graph, which fits again in full screen', async () => {
    const { page } = fixture;
    const session = await fixture.example();
    const op = 100;
    const { ops } = await fixture.get<{ ops: Op[] }>('steps/3/ops?limit=1000');
    const layer = ops[op]?.op_layer_id ?? 0;
    await fixture.show(
      session,
      `step=3&l=${layer}&sel=o:${op}&speed=0.0001&tab=graph&p.table=rows:accesses`,
    );
    const accesses = page.getByRole('grid', { name: /Accesses of step/ });
    const shownOp = () => accesses.locator('.vgrid-row[aria-selected=true] .vgrid-cell').nth(2).innerText(); // prettier-ignore
    await expect.poll(shownOp).toBe(String(op));
    await page.locator(`.graph[data-drawn="${layer}"]`).waitFor();
    // Zoomed out of sight of the op.
    await page.locator('.graph-base').hover();
    for (let i = 0; i < 8; i += 1) await page.mouse.wheel(0, -400);
    await expect.poll(() => fixture.hash.get('w.graph')).not.toBeNull();
    const before = fixture.hash.get('w.graph');
    const at = await position().innerText();
    await bar().getByRole('button', { name: 'Play' }).click();
    await expect.poll(() => position().innerText()).not.toBe(at);
    await bar().getByRole('button', { name: 'Pause' }).click();
    // The link is written when the position rests.
    await expect.poll(() => fixture.hash.get('w.graph')).not.toBe(before);
    await expect
      .poll(async () => {
        const shown = `o:${ops[Number(await shownOp())]?.tensor_name ?? ''}`;
        return shown === fixture.hash.get('sel')?.replace(/~\d+$/, '');
      })
      .toBe(true);
    await page.locator('.graph-base').focus();
    await page.keyboard.press('f');
    await expect.poll(() => fixture.hash.get('full')).toBe('graph');
    await expect.poll(() => fixture.hash.get('w.graph')).toBeNull();
  });

  it('plays tokens at full speed to the end, and a brushed range in a loop', async () => {
    const { page } = fixture;
    await fixture.recorded(200);
    await speed().selectOption('1');
    await bar().getByRole('button', { name: 'Play' }).click();
    const { total } = await fixture.get<{ total: number }>('steps?limit=1');
    await expect.poll(() => fixture.hash.get('step')).toBe(String(total - 1));
    await bar().getByRole('button', { name: 'Play' }).waitFor();
    expect(fixture.hash.get('sel')).toMatch(/^k:/);
    // A range of three tokens.
    await page.goto(`${page.url().replace(/&(sel|step|r|loop)=[^&]*/g, '')}&r=token:20:23,&loop=1`);
    await fixture.ops.waitFor();
    await speed().selectOption('0.002');
    await bar().getByRole('button', { name: 'Play' }).click();
    const seen = new Set<string>();
    await expect
      .poll(
        async () => {
          // The link is written when the position rests.
          seen.add(/step \d+/.exec(await position().innerText())?.[0] ?? '');
          return seen.size;
        },
        { interval: 20 },
      )
      .toBe(3);
    await bar().getByRole('button', { name: 'Pause' }).click();
  });

  it('is recorded as a video of the range, with its map and tokens', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(12);
    // As fast as possible, but at least 1.5 s: on a busy machine, steps take ten times as long.
    const { steps } = await fixture.get<{ steps: Step[] }>('steps?limit=8');
    const ns = steps.slice(4, 8).reduce((sum, { duration_ns }) => sum + duration_ns, 0);
    const speed = SPEEDS.findLast((one) => ns / 1e9 / one > 1.5) ?? SPEEDS[0];
    await fixture.show(session, `r=step:4:8,&loop=1&speed=${speed}`);
    const arrives = page.waitForEvent('download', { timeout: 0 }); // as long as a test may take
    await bar().getByRole('button', { name: 'Record a video' }).click();
    await bar().getByRole('button', { name: 'Stop the video' }).waitFor();
    // It ends by itself, also of a loop.
    const file = await arrives;
    await bar().getByRole('button', { name: 'Record a video' }).waitFor();
    expect(fixture.hash.get('loop')).toBeNull();
    expect(file.suggestedFilename()).toBe(`${session}.webm`);
    const bytes = await readFile(await file.path());
    expect(bytes.subarray(0, 4).toString('hex')).toBe('1a45dfa3'); // EBML
    if (process.env.TT_KEEP_VIDEO) await writeFile(process.env.TT_KEEP_VIDEO, bytes);
    const player = await page.context().newPage(); // the page itself may load no media
    const seen = await player.evaluate(pictures, bytes.toString('base64'));
    await player.close();
    expect([seen.width, seen.height]).toEqual([1280, 720]);
    expect(seen.seconds).toBeGreaterThan(1);
    // The parts of the first and of the last picture: text and map move, the scale does not.
    const [first, last] = [seen.sums[0], seen.sums.at(-1)];
    expect(last?.clock).not.toBe(first?.clock);
    expect(last?.map).not.toBe(first?.map);
    expect(last?.text).not.toBe(first?.text);
    for (const part of ['clock', 'map', 'scale', 'text'] as const)
      expect(last?.[part], `the ${part} is empty`).toBeGreaterThan(0);
  });

  it('of the text: tinted by time, dragging moves through the tokens', async () => {
    const { page } = fixture;
    await fixture.recorded(60);
    await page.getByLabel('tint text by time').check();
    await expect.poll(() => fixture.hash.get('p.chat')).toBe('cost');
    await expect
      .poll(() =>
        page.evaluate(() =>
          [1, 2, 3, 4, 5]
            .map((level) => CSS.highlights.get(`token-cost-${level}`)?.size ?? 0)
            .reduce((a, b) => a + b),
        ),
      )
      .toBeGreaterThan(1);
    // Its scale, from the fastest to the slowest token.
    const scale = page.getByRole('img', { name: /^Tint: time per token from .* to .*, log/ });
    expect(await scale.innerText()).toMatch(/^[\d.]+ .?s\s*(≥ )?[\d.]+ .?s$/);
    expect(await scale.locator('i').count()).toBe(5);
    const from = await fixture.pointInAnswer(10);
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    const to = await fixture.pointInAnswer(60);
    await page.mouse.move(to.x, to.y, { steps: 6 });
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^k:/);
    await page.mouse.up();
    expect(await page.evaluate(() => getSelection()?.isCollapsed)).toBe(true);
    await page.getByLabel('tint text by time').uncheck();
    expect(await scale.count()).toBe(0);
    await expect
      .poll(() => page.evaluate(() => CSS.highlights.get('token-cost-1')?.size ?? 0))
      .toBe(0);
  });

  it('has its slider in one place, with and without an op', async () => {
    await fixture.show(await fixture.recorded(8), 'step=2');
    const slider = bar().getByRole('slider');
    const before = await slider.boundingBox();
    await fixture.ops.locator('.vgrid-row').nth(3).click();
    await bar().getByText('op 3 of').waitFor();
    expect(await slider.boundingBox()).toEqual(before);
  });

  it('follows the slider', async () => {
    await fixture.recorded(12);
    await bar().getByRole('slider').focus();
    await fixture.page.keyboard.press('Home');
    await expect.poll(() => fixture.hash.get('step')).toBe('0');
    // The graph of the prompt arrives after the step is shown.
    const output = await fixture.outputOf(0, 0);
    await expect.poll(() => fixture.hash.get('sel')).toBe(`o:${output}`);
  });
});
