/* global Buffer, document, process, fetch, setTimeout, URL */
// Writes pictures of the views of the page, with the model that tt-server brings along:
//
//   node screenshots.mjs [FOLDER [THEME | SIZE | VIEW]...]      TT_SERVER: the tt-server program
//
// Without arguments: those of README.md and docs/attach.md, as PNG. With themes or sizes: all views, or the named ones, as
// WebP:
//
//   node screenshots.mjs ../docs/screenshots dark light 1440x900 1920x1080
import { execFileSync, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { chromium } from 'playwright-core';

const [folder = '../docs/images', ...rest] = process.argv.slice(2);
const themes = rest.filter((one) => ['dark', 'light'].includes(one));
const sizes = rest.filter((one) => /^\d+x\d+$/.test(one));
const views = rest.filter((one) => !themes.includes(one) && !sizes.includes(one));

// Name -> the hash after the session (null: no session is open), and what is done before and after the
// picture. OTHER: a shorter session; ROUTED: one of a mixture of experts, which can be the open one.
const VIEWS = {
  page: ['step=40&sel=o:64&l=3'],
  tensors: ['full=map&p.map=y:tensor,v:bytes'],
  components: ['p.map=y:component,x:layer'],
  ops: ['full=map&p.map=y:op,x:time'],
  reads: ['full=map&p.map=y:file,x:time,v:bytes'],
  heads: ['p.map=y:head,v:bytes&sel=h:3.1&step=40'],
  compared: ['step=40&sel=k:49&cmp=k:20'],
  memory: ['full=map&p.map=y:memory,x:all,v:bytes,p:heat', (page) => pointAt(page, 0.3, 0.75)],
  range: ['r=token:20:40,layer:1:4', (page) => pointAt(page, 0.4, 0.5)],
  playback: ['step=20&speed=0.0005&p.chat=cost', (page) => play(page)],
  graph: ['tab=graph&step=40&sel=o:64&l=3'],
  model: ['full=graph&p.graph=model,heat:bytes,all'],
  accesses: ['full=table&p.table=rows:accesses,all&q=kind:weight'],
  totals: ['p.table=by:tensor,all&sel=t:blk.3.ffn_down.weight&l=3'],
  steps: ['full=table&p.table=rows:steps'],
  nodes: ['full=graph&p.graph=list&l=3'],
  overview: ['full=analytics'],
  roofline: ['full=analytics&p.analytics=page:roofline&ph=g'],
  reuse: ['full=analytics&p.analytics=page:reuse'],
  attention: ['full=analytics&p.analytics=page:attention'],
  lens: ['full=analytics&p.analytics=page:lens'],
  experts: ['session=ROUTED&full=analytics&p.analytics=page:experts'],
  'expert-map': ['session=ROUTED&full=map&p.map=y:expert,v:accesses'],
  checks: ['full=analytics&p.analytics=page:checks'],
  sessions: ['with=OTHER&full=compare'],
  'session-values': ['with=OTHER&full=compare&p.compare=of:values'],
  'two-steps': ['with=OTHER&full=compare&p.compare=of:steps,a:3,b:3'],
  'compared-graph': [
    'full=compare&p.compare=of:layers,a:0,b:3',
    (page) => page.locator('.compare-graph').evaluate((one) => one.scrollIntoView()),
  ],
  phases: ['full=compare&p.compare=of:phases,value:bytes,by:component'],
  layers: ['full=compare&p.compare=of:layers,a:0,b:3,by:tensor'],
  sql: [
    `full=sql&f.sql=${encodeURIComponent('SELECT operation_type, duration_ns, executions, bytes_read, bytes_per_s\nFROM op_time\nORDER BY duration_ns DESC')}`,
  ],
  values: ['full=values&step=40'],
  list: ['full=sessions'],
  chat: ['full=chat&p.chat=cost'],
  inspector: ['full=inspector&step=40&sel=o:64&l=3'],
  budget: ['full=budget'],
  weights: [
    'full=weights&p.weights=t:blk.3.ffn_down.weight,show:picture',
    (page) => pointAt(page, 0.4, 0.5),
  ],
  tensor: ['full=weights&p.weights=t:blk.3.ffn_down.weight,show:histogram'],
  debugger: ['tab=debug,graph', (page) => stopInRun(page), (page) => cancelRun(page)],
  start: [null],
  watch: ['step=40', (page) => page.keyboard.press('r')],
  'graph-layout': ['step=40&sel=o:64&l=3', (page) => page.keyboard.press('g')],
  search: ['', (page) => page.keyboard.press('Control+k')],
  attached: ['', (page) => showAttached(page)],
};
const OF_DOCUMENTS = ['page', 'memory', 'playback', 'attached'];

// The budget panel polls, so the network is never idle.
const isLoaded = async (page) => {
  await page.waitForTimeout(1000);
  await page.waitForFunction(
    () =>
      ![...document.querySelectorAll('.empty progress, .graph:not([data-drawn])')].some((one) => one.checkVisibility()),
  ); // prettier-ignore
  await page.waitForTimeout(1000);
};
const pointAt = async (page, x, y) => {
  const box = await page.locator('.plane-input').boundingBox();
  await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
};
const stopInRun = async (page) => {
  await page.getByRole('textbox', { name: 'New breakpoint' }).fill('ffn_out layer 3 step 2-');
  await page.keyboard.press('Enter');
  await page.getByRole('radio', { name: 'Text' }).check();
  await page.getByRole('textbox', { name: 'Prompt' }).fill('What is the KV cache?');
  await page.keyboard.press('Control+Enter');
  await page.locator('.debug-bar[data-running=false]').waitFor({ timeout: 60_000 });
  await page.waitForTimeout(1500);
};
const cancelRun = async (page) => {
  await page.locator('.debug-bar').getByRole('button', { name: 'Cancel' }).click();
  await page.locator('.debug-bar').waitFor({ state: 'detached' });
};
const play = async (page) => {
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await page.waitForTimeout(600);
};

// A llama-server with two slots, recorded by tt attach, that answers three requests.
const showAttached = async (page) => {
  const { origin } = new URL(page.url());
  const { models } = await (await fetch(`${origin}/api/v1/models`)).json();
  const port = 20_000 + (process.pid % 20_000);
  const command = `llama-server -m ${basename(models[0].path)} -np 2 -c 1024 -t 1 --host 127.0.0.1 --port ${port}`;
  const attach = spawn(
    join(dirname(server.spawnfile), 'tt'),
    ['attach', '-o', data, '--', ...command.split(' ')],
    { cwd: dirname(models[0].path), stdio: 'ignore' },
  );
  const ended = new Promise((done) => attach.once('exit', done));
  const isReady = () => fetch(`http://127.0.0.1:${port}/health`).then(({ ok }) => ok, () => false); // prettier-ignore
  while (!(await isReady())) await page.waitForTimeout(200);
  const ask = async (content) => {
    const body = JSON.stringify({ messages: [{ role: 'user', content }], max_tokens: 48, temperature: 0 }); // prettier-ignore
    await (await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: 'POST', body })).json(); // prettier-ignore
  };
  await Promise.all(['What is the KV cache?', 'What is a token?'].map(ask));
  await ask('What is a layer?');
  attach.kill('SIGTERM');
  await ended;
  // The newest one: there is another of each theme and size before.
  const recorded = page.locator('.session', { hasText: 'llama-server' }).first();
  await recorded.locator('.session-open').click();
  await page
    .locator('.recorded')
    .getByText(/^llama-server, process/)
    .waitFor();
  await page.getByLabel('Headline').waitFor();
};

const QUALITY = 12; // text can be read, and the pictures of all views are 9 MB

const data = await mkdtemp(join(tmpdir(), 'tt-pictures-'));
const server = spawn(
  process.env.TT_SERVER ?? '../build/release/bin/tt-server',
  ['--port', '0', '--data-dir', data, '-t', '1', '--log-level', 'error'],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
const browser = await chromium.launch({
  executablePath: process.env.TT_CHROMIUM ?? '/usr/bin/chromium-headless-shell',
  args: ['--headless', '--no-sandbox', '--disable-gpu'],
});
try {
  const url = await new Promise((resolve) => {
    server.stdout.on('data', (text) => resolve(String(text).trim().split('\n')[0]));
  });
  const other = await record(url, { tokens: 24 });
  const session = await record(url, { tokens: 128 });
  await recordRouted();
  await mkdir(folder, { recursive: true });
  for (const size of sizes.length > 0 ? sizes : ['1440x900'])
    for (const theme of themes.length > 0 ? themes : ['light'])
      for (const [name, [hash, prepare, finish]] of Object.entries(VIEWS)) {
        if (rest.length === 0 && !OF_DOCUMENTS.includes(name)) continue;
        if (views.length > 0 && !views.includes(name)) continue;
        const [width, height] = size.split('x').map(Number);
        const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
        page.setDefaultTimeout(120_000);
        const link = hash?.replace('OTHER', other).replace('ROUTED', 'routed');
        await page.goto(hash === null ? url : `${url}/#1&${link.startsWith('session=') ? '' : `session=${session}&`}${link}`); // prettier-ignore
        await page.locator('.status').waitFor();
        await isLoaded(page);
        await prepare?.(page);
        await isLoaded(page);
        if (rest.length === 0) await page.screenshot({ path: join(folder, `${name}.png`) });
        else {
          const devtools = await page.context().newCDPSession(page);
          const options = { format: 'webp', quality: QUALITY };
          const { data: picture } = await devtools.send('Page.captureScreenshot', options);
          const file = join(folder, `${name}-${theme}-${size}.webp`);
          await writeFile(file, Buffer.from(picture, 'base64'));
        }
        await finish?.(page);
        await page.close();
      }
} finally {
  await browser.close();
  server.kill();
  await rm(data, { recursive: true, force: true });
}

// With a model that the server does not have.
async function recordRouted() {
  const tt = join(dirname(server.spawnfile), 'tt');
  const model = join(data, 'moe.gguf');
  const run = (...args) => execFileSync(tt, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  run('model', 'moe', '--layers', '4', '-q', '-o', model);
  run('record', '-m', model, '-p', 'Once upon a time there was', '-n', '48', '-t', '1', '--ignore-eos', '--capture', 'router', '-o', join(data, 'routed.ttrace')); // prettier-ignore
}

async function record(url, { tokens }) {
  const api = `${url}/api/v1`;
  const call = async (path, body) => {
    const init = body && {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    };
    return (await fetch(`${api}${path}`, init)).json();
  };
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  while ((await call('/health')).status !== 'ok') await sleep(200);
  const messages = [{ role: 'user', content: 'What is the KV cache?' }];
  const { id } = await call('/generate', {
    messages,
    max_tokens: tokens,
    ignore_eos: true,
    temperature: 0,
    capture: ['attention', 'lens', 'l_out|ffn_inp|embd'],
  });
  while (['queued', 'running'].includes((await call(`/generate/${id}`)).state)) await sleep(200);
  return id;
}
