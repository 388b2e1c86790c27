// Is the page fast enough to use? Budgets: those of the table that this prints. Sections:
// - start: first contentful paint, the moment a prompt can be typed, scripts loaded at the start
// - open: a session of 2,000 steps, from the link until all steps are there
// - map: pan and zoom of every preset over 100 million accesses: frames, and the time from the last
//   movement until the picture is sharp; - hover: at 2560x1440, and the least time of such a frame
// - table: scrolling through all accesses, and jumps to distant rows
// - select: a click in the map until table and inspector show it, and a brush until it has its totals;
// - analytics: each page of Analytics over 100 million accesses, from the click until all charts are
//   drawn, and frames while the slider of "Hot and cold" moves
// - compare: the same session with one of as many accesses; - sql: until one can type in the editor
// - play: playback
// - run: from Ctrl+Enter until the first op of a long prompt is shown, and from the last token until the
//   six sentences of the summary are
// - graph: layout of 3,000 nodes in the page's worker
// - heap (only with --only heap): the page's objects in the layout Watch while it watches runs of the
//   model `small`, one after the other, for --minutes
//
// Chromium's headless shell with software rendering. Frames are the intervals of requestAnimationFrame; at
// 60 Hz the least is 16.7 ms. --only NAME runs one section; --session FILE is another long session.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { bundledModel, machine, median, modelFile, options, program, quantile, Server, sleep } from './harness.mjs';

const require = createRequire(new URL('../../webui/package.json', import.meta.url));
const { chromium } = require('playwright-core');

const o = options({
  only: '',
  session: '',
  accesses: 100_000_000,
  steps: 2000,
  rounds: 5,
  minutes: 10,
  browser: process.env.TT_CHROMIUM ?? '/usr/bin/chromium-headless-shell',
});

// ---- Sessions ----------------------------------------------------------------------------

const folder = mkdtempSync(join(tmpdir(), 'tt-page-'));
const tt = (...args) => execFileSync(program('tt'), args, { stdio: ['ignore', 'ignore', 'inherit'] });
const record = (name, model, tokens) =>
  tt('record', '-m', model, '-p', 'Once upon a time', '-n', String(tokens), '-c', '4096', '--ignore-eos',
     '-o', join(folder, `${name}.ttrace`));

// `shape`: of the model that is recorded; its steps are repeated.
function longSession(shape) {
  if (o.session !== '' && shape === 'small') return o.session;
  const kept = join(tmpdir(), `tt-bench-${shape === 'small' ? '' : `${shape}-`}${o.accesses}.ttrace`);
  if (existsSync(kept)) return kept;
  record('short', modelFile(shape), 60);
  execFileSync(program('make_big_session'), [join(folder, 'short.ttrace'), kept, String(o.accesses)]);
  rmSync(join(folder, 'short.ttrace'));
  return kept;
}

const wants = (section) => section === o.only || (o.only === '' && section !== 'heap');
if (['map', 'hover', 'table', 'select', 'play', 'analytics', 'compare', 'sql'].some(wants)) copyFileSync(longSession('small'), join(folder, 'long.ttrace'));
if (['map', 'analytics'].some(wants)) copyFileSync(longSession('moe'), join(folder, 'routed.ttrace'));
if (wants('compare')) copyFileSync(longSession('small'), join(folder, 'other.ttrace'));
if (wants('open')) record('steps', bundledModel, o.steps - 1);
if (wants('graph')) {
  const model = join(tmpdir(), 'tt-bench-80-layers.gguf');
  if (!existsSync(model)) tt('model', 'small', '--layers', '80', '--embd', '256', '--ff', '512', '-q', '-o', model);
  record('layers', model, 1);
}

const model = o.only === 'heap' ? modelFile('small') : bundledModel;
const server = new Server(program('tt-server'), ['-m', model, '-t', '1', '-c', '8192', '--port', '0', '--data-dir', folder]);
await server.ready(
  (output) => /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0],
  async (url) => (await (await fetch(`${url}/api/v1/health`)).json()).model_state === 'loaded',
);
const rest = async (path) => (await fetch(`${server.url}/api/v1/${path}`)).json();
const browser = await chromium
  .launch({ executablePath: o.browser, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] })
  .catch(async (error) => {
    await server.stop();
    throw error;
  });

// ---- The page and what it measures ---------------------------------------------------------

// Runs before the scripts of the page.
function probe() {
  const seen = { requests: 0, inputAt: 0, changedAt: 0, typedAt: 0, frames: [], worker: '' };
  window.seen = seen;
  const fetched = window.fetch;
  window.fetch = async (...args) => {
    seen.requests += 1;
    try {
      return await fetched(...args);
    } finally {
      seen.requests -= 1;
    }
  };
  window.Worker = class extends window.Worker {
    constructor(url, how) {
      super(url, how);
      seen.worker = String(url);
    }
  };
  for (const type of ['wheel', 'pointerdown', 'pointermove', 'click'])
    window.addEventListener(type, ({ timeStamp }) => { seen.inputAt = timeStamp; }, { capture: true, passive: true });

  // A small copy of the map: cheap to compare.
  const small = new OffscreenCanvas(160, 90).getContext('2d', { willReadFrequently: true });
  let before = '';
  const look = () => {
    const canvas = document.querySelector('.plane-base');
    if (!canvas || canvas.width === 0) return;
    small.clearRect(0, 0, 160, 90);
    small.drawImage(canvas, 0, 0, 160, 90);
    const now = small.getImageData(0, 0, 160, 90).data.join();
    if (now !== before) seen.changedAt = performance.now();
    before = now;
  };
  let last = 0;
  const frame = (at) => {
    if (seen.recording) seen.frames.push(at - last);
    last = at;
    if (seen.looks && !seen.recording) look();
    const prompt = document.querySelector('.composer textarea');
    if (seen.typedAt === 0 && prompt && !prompt.disabled) seen.typedAt = performance.now();
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  // Milliseconds from `from` (else the last input) until a condition holds in a frame.
  seen.until = (condition, from) =>
    new Promise((done) => {
      const check = () => {
        if (condition()) done(performance.now() - (from ?? seen.inputAt));
        else requestAnimationFrame(check);
      };
      check();
    });
}

async function open(hash = '', viewport = { width: 1440, height: 900 }) {
  const context = await browser.newContext({ viewport });
  const page = await context.newPage();
  await page.addInitScript(probe);
  await page.goto(`${server.url}/${hash === '' ? '' : `#1&${hash}`}`);
  await page.locator('.composer').waitFor({ state: 'attached' });
  return page;
}
const close = (page) => page.context().close();

// With all steps of the long session, so that nothing else is loaded while something is measured.
async function openLong(hash, viewport, session = 'long') {
  const { steps } = await rest(`sessions/${session}`);
  const page = await open(`session=${session}${hash === '' ? '' : `&${hash}`}`, viewport);
  await page.waitForFunction(
    (count) => [...document.querySelectorAll('.status span')].some(({ textContent }) =>
      textContent.includes(' step') && textContent.split(' step')[0].replace(/\D/g, '') === String(count)),
    steps,
    { timeout: 600_000 },
  );
  return page;
}

// Frames while something is done.
async function framesOf(page, work) {
  await page.evaluate(() => { window.seen.frames = []; window.seen.recording = true; });
  await work();
  return page.evaluate(() => { window.seen.recording = false; return window.seen.frames; });
}

// Waits until the picture does not change and no request is under way; milliseconds from the last
// input to the last change.
async function sharp(page) {
  await page.evaluate(() => { window.seen.looks = true; });
  for (let tries = 0; tries < 600; ++tries) {
    await sleep(100);
    const { rests, took } = await page.evaluate(() => ({
      rests: window.seen.requests === 0 && window.seen.changedAt > 0 && performance.now() - window.seen.changedAt > 400,
      took: window.seen.changedAt - window.seen.inputAt,
    }));
    if (!rests) continue;
    await page.evaluate(() => { window.seen.looks = false; });
    return Math.max(0, took);
  }
  throw new Error('the picture did not come to rest within a minute');
}

const boxOf = async (page, selector) => {
  const box = await page.locator(selector).first().boundingBox();
  return { ...box, at: (x, y) => [box.x + x * box.width, box.y + y * box.height] };
};

// ---- Figures -------------------------------------------------------------------------------

const rows = [];
// `most`: the budget; null: none.
function add(what, value, unit, most, digits = 0) {
  const text = (figure) => `${figure.toFixed(digits)} ${unit}`;
  const isMissed = most !== null && value > most;
  rows.push([what, text(value), most === null ? '' : `at most ${text(most)}`, isMissed ? 'missed' : '']);
  console.error(rows.at(-1).join('  '));
}
function addLeast(what, value, unit, least) {
  rows.push([what, `${value.toFixed(0)} ${unit}`, `at least ${least} ${unit}`, value < least ? 'missed' : '']);
  console.error(rows.at(-1).join('  '));
}
const p95 = (values) => quantile(values, 0.95);
const repeat = async (work) => {
  const values = [];
  for (let round = 0; round < o.rounds; ++round) values.push(await work(round));
  return values;
};

// What this machine needs at least for a frame of this size: a canvas that does not change, and one
// element that follows the pointer.
async function framesOfFloor() {
  const context = await browser.newContext({ viewport: { width: 2560, height: 1440 } });
  const page = await context.newPage();
  await page.addInitScript(probe);
  await page.goto('about:blank');
  await page.evaluate(() => {
    document.body.innerHTML =
      '<canvas width="2560" height="1400"></canvas><p style="position:fixed;left:0;top:0;width:200px;background:#ccc">Name</p>';
    document.querySelector('canvas').getContext('2d').fillRect(0, 0, 2560, 700);
    const follower = document.querySelector('p');
    window.addEventListener('pointermove', ({ clientX, clientY }) => {
      follower.style.transform = `translate(${clientX}px, ${clientY}px)`;
    });
  });
  const frames = await framesOf(page, async () => {
    for (let i = 0; i < 200; ++i)
      await page.mouse.move(2560 * (0.2 + 0.003 * i), 1440 * (0.5 + 0.3 * Math.sin(i / 9)));
  });
  await close(page);
  return frames;
}

const sections = {
  async start() {
    const values = await repeat(async () => {
      const page = await open();
      await page.waitForFunction(() => window.seen.typedAt > 0 && performance.getEntriesByName('first-contentful-paint').length > 0);
      const value = await page.evaluate(() => ({
        paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
        typed: window.seen.typedAt,
      }));
      const loaded = () => page.evaluate(() =>
        performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.endsWith('.js')));
      await page.waitForFunction(() => window.seen.requests === 0);
      value.scripts = await loaded();
      await page.mouse.move(100, 100); // the page loads the panels of a run
      await page.mouse.move(110, 100);
      await page.waitForFunction(() => window.seen.requests === 0);
      await sleep(500);
      value.panels = await loaded();
      await close(page);
      return value;
    });
    add('first contentful paint', median(values.map(({ paint }) => paint)), 'ms', 500);
    add('a prompt can be typed', median(values.map(({ typed }) => typed)), 'ms', 1000);
    const kilobytes = async (urls) => {
      let bytes = 0;
      for (const url of new Set(urls)) bytes += gzipSync(Buffer.from(await (await fetch(url)).arrayBuffer())).length;
      return bytes / 1000;
    };
    add('scripts loaded at the start, gzip', await kilobytes(values[0].scripts), 'KB', 120);
    add('with the panels of a run, loaded at the first input', await kilobytes(values[0].panels), 'KB', null);
  },

  async open() {
    const { steps } = await rest('sessions/steps');
    const values = await repeat(async () => {
      const page = await open();
      await page.locator('.tabs').first().waitFor();
      const value = await page.evaluate((count) => {
        const began = performance.now();
        location.hash = '#1&session=steps&p.table=rows:steps';
        return window.seen.until(() => document.querySelector(`[role=grid][aria-rowcount="${count + 1}"] .vgrid-row`) !== null, began);
      }, steps);
      await close(page);
      return value;
    });
    add(`a session of ${steps} steps is complete`, median(values), 'ms', 300);
  },

  async map() {
    const presets = {
      'token x layer': '', 'token x tensor': 'y:tensor,v:bytes', 'token x expert': 'y:expert,v:accesses', 'layer x component': 'y:component,x:layer',
      'op x time': 'y:op,x:time', 'file x time': 'y:file,x:time,v:bytes', memory: 'y:memory,x:all,v:bytes',
    };
    for (const [name, axes] of Object.entries(presets)) {
      const session = axes.includes('expert') ? 'routed' : 'long';
      const page = await openLong(`full=map${axes === '' ? '' : `&p.map=${axes}`}`, undefined, session);
      await page.locator('.plane-input').waitFor();
      await sharp(page);
      const box = await boxOf(page, '.plane-input');
      const frames = [];
      const waits = [];
      for (let round = 0; round < o.rounds; ++round) {
        await page.mouse.move(...box.at(0.45, 0.4));
        frames.push(...(await framesOf(page, async () => {
          for (let i = 0; i < 20; ++i) await page.mouse.wheel(0, -60);
        })));
        waits.push(await sharp(page));
        frames.push(...(await framesOf(page, async () => {
          await page.mouse.down({ button: 'middle' });
          for (let i = 1; i <= 30; ++i) await page.mouse.move(...box.at(0.45 - 0.008 * i, 0.4 - 0.006 * i));
          await page.mouse.up({ button: 'middle' });
        })));
        waits.push(await sharp(page));
        await page.keyboard.press('0');
        await sharp(page);
      }
      add(`${name}: frame, p95`, p95(frames), 'ms', 33, 1);
      add(`${name}: sharp, median`, median(waits), 'ms', 150);
      await close(page);
    }
  },

  async hover() {
    for (const axes of ['', 'y:tensor,v:bytes']) {
      const page = await openLong(`full=map${axes === '' ? '' : `&p.map=${axes}`}`, { width: 2560, height: 1440 });
      await page.locator('.plane-input').waitFor();
      await sharp(page);
      const box = await boxOf(page, '.plane-input');
      const frames = await framesOf(page, async () => {
        for (let i = 0; i < 200; ++i) await page.mouse.move(...box.at(0.2 + 0.003 * i, 0.5 + 0.3 * Math.sin(i / 9)));
      });
      add(`hover at 2560x1440, ${axes === '' ? 'token x layer' : 'token x tensor'}: frame, p95`, p95(frames), 'ms', 17, 1);
      await close(page);
    }
    add('the same in a page without scripts of ours: frame, p95', p95(await framesOfFloor()), 'ms', null, 1);
  },

  async table() {
    const page = await openLong('full=table&p.table=rows:accesses,all');
    const grid = page.locator('[role=grid]').first();
    await grid.locator('.vgrid-row').first().waitFor();
    const box = await boxOf(page, '[role=grid]');
    await page.mouse.move(...box.at(0.5, 0.5));
    const scroll = await framesOf(page, async () => {
      for (let i = 0; i < 60; ++i) await page.mouse.wheel(0, 400);
    });
    // Anywhere in the session, one jump after the other.
    const jumps = await framesOf(page, () =>
      page.evaluate(async () => {
        const [host] = document.querySelectorAll('[role=grid]');
        const scrolled = [host, ...host.querySelectorAll('*')].find((one) => one.scrollHeight > 100_000);
        for (let i = 0; i < 60; ++i) {
          scrolled.scrollTop = ((i * 0.618) % 1) * scrolled.scrollHeight;
          await new Promise((done) => requestAnimationFrame(done));
        }
      }),
    );
    add(`table of ${Number(await grid.getAttribute('aria-rowcount')) - 1} rows, scrolling: frame, p95`, p95(scroll), 'ms', 33, 1);
    add('table, jumps to any row: frame, p95', p95(jumps), 'ms', 33, 1);
    await close(page);
  },

  async select() {
    const began = performance.now();
    const page = await openLong('');
    add('all steps of the long session', (performance.now() - began) / 1000, 's', null, 1);
    await page.locator('.plane-input').waitFor();
    await sharp(page);
    await page.locator('[role=grid][aria-label^="Ops of step"] .vgrid-row').first().waitFor();
    const box = await boxOf(page, '.plane-input');
    const values = await repeat(async (round) => {
      await page.evaluate(() => {
        const state = () => [
          document.querySelector('h2[title]')?.textContent ?? '',
          document.querySelector('[role=grid][aria-label^="Ops of step"]')?.getAttribute('aria-label') ?? '',
        ];
        const before = state();
        window.seen.selected = new Promise((done) => {
          window.addEventListener('click', () => {
            void window.seen.until(() => {
              const now = state();
              const row = document.querySelector('[role=grid][aria-label^="Ops of step"] .vgrid-row:not([hidden])');
              return now.every((text, i) => text !== '' && text !== before[i]) && (row?.textContent ?? '').length > 8;
            }).then(done);
          }, { once: true, capture: true });
        });
      });
      await page.mouse.click(...box.at(0.3 + 0.07 * round, 0.4));
      return page.evaluate(() => window.seen.selected);
    });
    add('a selection is in all views, median', median(values), 'ms', 150);
    const brushes = await repeat(async (round) => {
      await page.mouse.move(...box.at(0.3, 0.3));
      await page.mouse.down();
      await page.mouse.move(...box.at(0.4 + 0.05 * round, 0.6), { steps: 5 });
      await page.evaluate(() => {
        const totals = () => document.querySelector('.range-totals')?.textContent ?? '';
        window.seen.brushed = new Promise((done) => {
          window.addEventListener('pointerup', () => {
            const released = performance.now();
            void window.seen.until(() => /\d/.test(totals()) && !totals().includes('…'), released).then(done);
          }, { once: true, capture: true });
        });
      });
      await page.mouse.up();
      const took = await page.evaluate(() => window.seen.brushed);
      await page.keyboard.press('Escape');
      await page.waitForFunction(() => document.querySelector('.range-totals') === null);
      return took;
    });
    add('a brush has its totals, median', median(brushes), 'ms', 150);
    await close(page);
  },

  // From the choice of a page. The second time: what the server computed once, it keeps (docs/limits.md).
  async analytics() {
    for (const session of ['long', 'routed']) {
      const page = await openLong('full=analytics&p.analytics=page:overview', undefined, session);
      await page.locator('.analytics-grid').waitFor();
      for (const id of ['overview', 'roofline', 'reuse', 'experts', 'attention', 'checks']) {
        const times = [];
        for (let round = 0; round < 2; ++round) {
          await page.evaluate((other) => { location.hash = location.hash.replace(/page:\w+/, `page:${other}`); }, id === 'checks' ? 'roofline' : 'checks');
          await page.waitForFunction(() => window.seen.requests === 0 && document.querySelector('.analytics-grid .chart-card') !== null);
          times.push(await page.evaluate((shown) => {
            const began = performance.now();
            const before = document.querySelector('.analytics-grid');
            location.hash = location.hash.replace(/page:\w+/, `page:${shown}`);
            const isDrawn = (card) => !card.querySelector('progress, .loading') && card.getAttribute('data-loading') !== 'true';
            return window.seen.until(() => {
              // A model without experts has a sentence instead.
              const cards = [...document.querySelectorAll('.analytics-grid .chart-card, .analytics-grid > .empty')];
              const changed = performance.now() - began > 30 || document.querySelector('.analytics-grid') !== before;
              return changed && window.seen.requests === 0 && cards.length > 0 && cards.every(isDrawn);
            }, began);
          }, id));
        }
        add(`Analytics, ${id}, ${session}: first time`, times[0], 'ms', null);
        add(`Analytics, ${id}, ${session}: again`, times[1], 'ms', 300);
      }
      if (session === 'long') {
        await page.evaluate(() => { location.hash = location.hash.replace(/page:\w+/, 'page:reuse'); });
        const slider = page.locator('.chart-slider input').first();
        await slider.waitFor();
        await page.waitForFunction(() => window.seen.requests === 0);
        await slider.focus();
        const frames = await framesOf(page, async () => {
          for (let i = 0; i < 60; ++i) await page.keyboard.press(i % 20 < 10 ? 'ArrowRight' : 'ArrowLeft');
        });
        add('Analytics, slider: frame, p95', p95(frames), 'ms', 17, 1);
      }
      await close(page);
    }
  },

  async compare() {
    const page = await openLong('');
    await page.locator('.plane-input').waitFor();
    const values = await repeat(async () => {
      const took = await page.evaluate(() => {
        const began = performance.now();
        location.hash = '#1&session=long&with=other&full=compare';
        return window.seen.until(() => document.querySelector('[aria-label="Compared sessions"]') !== null && document.querySelector('.compare .loading, .compare progress') === null && window.seen.requests === 0, began);
      });
      await page.evaluate(() => { location.hash = '#1&session=long'; });
      await page.waitForFunction(() => document.querySelector('[aria-label="Compared sessions"]') === null);
      return took;
    });
    add('a comparison of two sessions: first time', values[0], 'ms', null);
    add('the same again, median', median(values.slice(1)), 'ms', 500);
    await close(page);
  },

  async sql() {
    const values = await repeat(async () => {
      const page = await openLong('');
      await page.waitForFunction(() => window.seen.requests === 0);
      const took = await page.evaluate(() => {
        const began = performance.now();
        location.hash = '#1&session=long&full=sql';
        return window.seen.until(() => document.querySelector('.sql-editor')?.shadowRoot?.querySelector('.cm-content[contenteditable=true]') != null, began);
      });
      await close(page);
      return took;
    });
    add('the SQL editor can be used, median', median(values), 'ms', 300);
  },

  async play() {
    const page = await openLong('step=20&speed=0.0005');
    await page.locator('.playback-position').waitFor();
    await sharp(page);
    const values = await repeat(async (round) => {
      // From the start of a step: an op may last for seconds at this speed.
      await page.evaluate((step) => { location.hash = `#1&session=long&step=${step}&speed=0.0005`; }, 20 + round);
      await page.locator('.playback-position', { hasText: `step ${20 + round} of ` }).waitFor();
      await page.evaluate(() => {
        const position = document.querySelector('.playback-position');
        const before = position.textContent; // without an op
        window.seen.played = new Promise((done) => {
          window.addEventListener('click', () => {
            void window.seen.until(() => position.textContent !== before).then(done);
          }, { once: true, capture: true });
        });
      });
      await page.getByRole('button', { name: 'Play', exact: true }).click();
      const start = await page.evaluate(() => window.seen.played);
      const began = performance.now();
      const frames = await framesOf(page, () => sleep(2000));
      const rate = (1000 * frames.length) / (performance.now() - began);
      await page.getByRole('button', { name: 'Pause' }).click();
      return { start, rate, frames };
    });
    add('playback starts, median', median(values.map(({ start }) => start)), 'ms', 200);
    addLeast('playback, median', median(values.map(({ rate }) => rate)), 'frames/s', 30);
    await close(page);
  },

  async run() {
    const page = await open();
    await page.getByRole('radio', { name: 'Text' }).check(); // a chat would go on
    const prompt = page.getByRole('textbox', { name: 'Prompt' });
    const values = await repeat(async (round) => {
      await prompt.fill(`${round} ${'Once upon a time there was a little frog. '.repeat(400)}`);
      await page.evaluate(() => {
        const sentences = () => [...document.querySelectorAll('ol[aria-label="Summary"] button')];
        const before = new Set(sentences()); // of the run before
        const socket = new WebSocket(new URL('api/v1/live', document.baseURI).href.replace('http', 'ws'));
        socket.onopen = () => { socket.send(JSON.stringify({ type: 'subscribe', session: '*', kinds: [] })); };
        const ended = new Promise((end) => {
          socket.onmessage = ({ data }) => {
            const { type, state } = JSON.parse(data);
            if (type === 'state' && state === 'done') end(performance.now());
          };
        });
        const first = new Promise((shown) => {
          addEventListener('keydown', ({ timeStamp }) => {
            void window.seen.until(() => /is running: [1-9]\d* ops? done/.test(document.body.textContent), timeStamp).then(shown);
          }, { once: true, capture: true });
        });
        const all = ended.then((at) => {
          socket.close();
          return window.seen.until(() => sentences().filter((one) => !before.has(one)).length === 6, at);
        });
        window.seen.run = Promise.all([first, all]);
      });
      await prompt.press('Control+Enter');
      return page.evaluate(() => window.seen.run);
    });
    add('from Run until the first op is shown, median', median(values.map(([first]) => first)), 'ms', 300);
    add('from the end until the six sentences are shown, median', median(values.map(([, summary]) => summary)), 'ms', 1000);
    await close(page);
  },

  async graph() {
    const whole = await rest('sessions/layers/templates/1/graph');
    const graph = layoutGraphOf(whole, 3000);
    const page = await open('session=layers&full=graph');
    await page.locator('.graph[data-drawn]:not([data-drawn=""])').waitFor();
    await page.evaluate((asked) => { window.seen.graph = asked; }, graph);
    const values = await repeat(async () => {
      let took = 0;
      const frames = await framesOf(page, async () => {
        took = await page.evaluate(() => {
          const worker = new Worker(window.seen.worker, { type: 'module' });
          const began = performance.now();
          return new Promise((done) => {
            worker.onmessage = () => {
              worker.terminate();
              done(performance.now() - began);
            };
            worker.postMessage({ id: 1, graph: window.seen.graph });
          });
        });
      });
      return { took, longest: Math.max(...frames) };
    });
    add(`layout of ${graph.nodes.length} nodes in a new worker, median`, median(values.map(({ took }) => took)), 'ms', 150);
    add('meanwhile: longest frame, median', median(values.map(({ longest }) => longest)), 'ms', 33, 1);
    await close(page);
  },

  async heap() {
    const page = await open();
    await page.locator('#prompt').waitFor();
    await page.locator('body').press('r'); // the layout Watch
    await page.waitForFunction(() => JSON.parse(localStorage.getItem('tensor-trace.settings') ?? '{}').layout?.includes('"chat","sessions"'));
    const devtools = await page.context().newCDPSession(page);
    const run = async () => {
      const body = { prompt: 'Once upon a time', max_tokens: 400, temperature: 0, ignore_eos: true, reuse_prefix: false };
      const init = { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
      const { id } = await (await fetch(`${server.url}/api/v1/generate`, init)).json();
      await page.evaluate((session) => { location.hash = `#1&session=${session}`; }, id);
      while (['queued', 'running'].includes((await rest(`generate/${id}`)).state)) await sleep(100);
      await sleep(1500); // the last requests of the page
    };
    // What is in use in the page after a run: its objects, and the arrays of bytes and numbers.
    const used = async () => {
      const objects = await objectBytes(devtools);
      const { backingStorageSize } = await devtools.send('Runtime.getHeapUsage');
      return { objects, arrays: backingStorageSize };
    };
    for (let i = 0; i < 3; ++i) await run();
    const settled = await used();
    const ends = performance.now() + o.minutes * 60_000;
    const runs = [];
    while (performance.now() < ends) {
      await run();
      runs.push(await used());
    }
    for (const part of ['objects', 'arrays']) {
      const percents = runs.map((one) => (100 * one[part]) / settled[part]);
      add(`${part} after ${o.minutes} min and ${runs.length} runs, of ${(settled[part] / 1e6).toFixed(1)} MB after three`, percents.at(-1), '%', 120);
      add(`${part}, the most after a run`, Math.max(...percents), '%', 120);
    }
    await close(page);
  },
};

// A graph of `count` nodes from the graph of a whole model, as the page lays it out: what many nodes
// read and nobody computes is repeated beside each of its readers.
function layoutGraphOf({ nodes, edges }, count) {
  const index = new Map(nodes.map(({ tensor }, i) => [tensor, i]));
  const made = nodes.slice(0, count).map(({ op, name }) => ({ w: 40 + 6 * Math.min(20, name.length), h: 34, canSink: op === null }));
  const readers = new Map();
  const out = [];
  for (const { from, to } of edges) {
    const [source, target] = [index.get(from), index.get(to)];
    if (source === undefined || target === undefined || target >= made.length || source >= target) continue;
    const isRepeated = made[source].canSink && readers.has(source);
    readers.set(source, target);
    if (isRepeated) made.push(made[source]);
    out.push([isRepeated ? made.length - 1 : source, target]);
  }
  return { nodes: made, edges: out };
}

// The bytes of the page's objects, without compiled code and the browser's own memory.
async function objectBytes(devtools) {
  const chunks = [];
  const addChunk = ({ chunk }) => chunks.push(chunk);
  devtools.on('HeapProfiler.addHeapSnapshotChunk', addChunk);
  await devtools.send('HeapProfiler.collectGarbage');
  await devtools.send('HeapProfiler.takeHeapSnapshot');
  devtools.off('HeapProfiler.addHeapSnapshotChunk', addChunk);
  const { snapshot, nodes } = JSON.parse(chunks.join(''));
  const fields = snapshot.meta.node_fields;
  const [types] = snapshot.meta.node_types;
  const [type, size] = [fields.indexOf('type'), fields.indexOf('self_size')];
  let bytes = 0;
  for (let at = 0; at < nodes.length; at += fields.length)
    if (!['code', 'native'].includes(types[nodes[at + type]])) bytes += nodes[at + size];
  return bytes;
}

try {
  for (const [name, measure] of Object.entries(sections)) if (wants(name)) await measure();
} finally {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

console.log(`${machine()}; headless Chromium, ${o.rounds} rounds`);
const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column].length)));
for (const row of rows)
  console.log(row.map((text, i) => (i === 0 ? text.padEnd(widths[0]) : text.padStart(widths[i] ?? 0))).join('  ').trimEnd());
