// Does watching a run in the browser slow the model down? Budget: tokens per second at least 0.9 of
// the value without a page (`--model small`), 0.97 with `--model tinyllama-1.1b`; the page's main
// thread at most 25 % busy at 200 tokens/s: processor time. The time of its tasks, which includes
// waiting for a processor, is printed beside.
//
// One inference thread; headless Chromium with software rendering, the page in its layout Watch. Runs with
// and without the page alternate. Speeds are those of the recorded steps. Also prints the
// processor time of all browser processes and of the server per second of a watched run.
//
// The browser is not driven by Playwright, which records all network traffic of a page: each live
// message would be sent to this process, too, which costs the model about as much as the page.
import { readFileSync, writeFileSync } from 'node:fs';
import { startBrowser } from './browser.mjs';
import { machine, median, options, sleep, startOurs } from './harness.mjs';

const o = options({
  model: 'small',
  rounds: 6,
  threads: 1,
  context: 8192,
  tokens: 600,
  browser: process.env.TT_CHROMIUM ?? '/usr/bin/chromium-headless-shell',
  profile: '', // file that receives a CPU profile of the page of the last round
});
const server = await startOurs(o);
const browser = await startBrowser(o.browser);
const { page } = browser;
await page.send('Performance.enable');

const api = async (path, body) => {
  const init = body && { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  return (await fetch(`${server.url}/api/v1${path}`, init)).json();
};
const body = { prompt: 'Once upon a time', max_tokens: o.tokens, temperature: 0, ignore_eos: true, reuse_prefix: false };

const metric = async (wanted) =>
  (await page.send('Performance.getMetrics')).metrics.find(({ name }) => name === wanted).value;
const mainSeconds = () => metric('ThreadTime');
const taskSeconds = () => metric('TaskDuration');
const browserSeconds = async () =>
  (await browser.send('SystemInfo.getProcessInfo')).processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
const serverSeconds = () => {
  const fields = readFileSync(`/proc/${server.child.pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
};

async function run(watched) {
  const { id } = await api('/generate', body);
  if (watched) await page.evaluate(`location.hash = '#1&session=${id}'`);
  while ((await api(`/generate/${id}`)).generated < o.tokens / 10) await sleep(50);
  const before = { wall: performance.now(), main: await mainSeconds(), task: await taskSeconds(), browser: await browserSeconds(), server: serverSeconds() };
  while (['queued', 'running'].includes((await api(`/generate/${id}`)).state)) await sleep(200);
  const seconds = (performance.now() - before.wall) / 1000;
  const used = {
    main: ((await mainSeconds()) - before.main) / seconds,
    task: ((await taskSeconds()) - before.task) / seconds,
    browser: ((await browserSeconds()) - before.browser) / seconds,
    server: (serverSeconds() - before.server) / seconds,
  };
  const { steps } = await api(`/sessions/${id}/steps?limit=10000&from=${Math.floor(o.tokens / 10)}`);
  const speed = ((steps.length - 1) * 1e9) / (steps.at(-1).end_ns - steps[0].end_ns);
  return { speed, ...used };
}

await run(false); // warm
const results = { without: [], with: [] };
for (let round = 0; round < o.rounds; ++round) {
  await page.open('about:blank', 'true');
  results.without.push(await run(false));
  await page.open(server.url, "document.querySelector('.composer') !== null");
  await page.press('r'); // the layout Watch
  const last = o.profile !== '' && round + 1 === o.rounds;
  if (last) {
    await page.send('Profiler.enable');
    await page.send('Profiler.start');
  }
  results.with.push(await run(true));
  if (last) {
    const { writeFileSync } = await import('node:fs');
    writeFileSync(o.profile, JSON.stringify((await page.send('Profiler.stop')).profile));
  }
}
const nodes = await page.evaluate("document.querySelectorAll('*').length");
await browser.close();
await server.stop();

const of = (kind, key) => median(results[kind].map((one) => one[key]));
const ratios = results.with.map(({ speed }, i) => speed / results.without[i].speed);
console.log(`${machine()}; ${o.model}, ${o.threads} thread, ${o.tokens} tokens, ${o.rounds} rounds`);
console.log(`tokens/s: ${of('without', 'speed').toFixed(1)} without the page, ${of('with', 'speed').toFixed(1)} with it; ratio ${median(ratios).toFixed(3)} (${ratios.map((r) => r.toFixed(2)).join(' ')})`);
console.log(`watched: main thread ${(100 * of('with', 'main')).toFixed(0)} % of a processor (tasks ${(100 * of('with', 'task')).toFixed(0)} % of the time), browser ${of('with', 'browser').toFixed(2)} cores, server ${of('with', 'server').toFixed(2)} cores (unwatched ${of('without', 'server').toFixed(2)}), ${nodes} elements`);
