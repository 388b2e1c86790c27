// How long until a file of `tt export -o s.html` shows its session? Budget: 1.5 s for a file of 20 MB,
// from opening it until answer, map, table and headline are there.
//
// Chromium's headless shell, a fresh profile for each round, offline. --tokens changes the size of the
// file; --file FILE is another one.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundledModel, machine, median, options, program } from './harness.mjs';

const require = createRequire(new URL('../../webui/package.json', import.meta.url));
const { chromium } = require('playwright-core');

const o = options({
  file: '',
  tokens: 280,
  rounds: 7,
  browser: process.env.TT_CHROMIUM ?? '/usr/bin/chromium-headless-shell',
});

const folder = mkdtempSync(join(tmpdir(), 'tt-html-file-'));
const tt = (...args) => execFileSync(program('tt'), args, { stdio: ['ignore', 'ignore', 'inherit'] });
let file = resolve(o.file);
if (o.file === '') {
  const session = join(folder, 's.ttrace');
  file = join(folder, 's.html');
  tt('record', '-m', bundledModel, '-p', 'Once upon a time', '-n', String(o.tokens), '--ignore-eos', '-o', session);
  tt('export', '-q', session, '-o', file);
}

// Runs in the page: the time since the navigation when everything is shown.
const shown = () =>
  new Promise((done) => {
    const isThere = () =>
      document.querySelector('.headline dd') &&
      document.querySelector('.token-text[data-part=answer]')?.textContent &&
      document.querySelector('.plane-base')?.width > 0 &&
      document.querySelector('.vgrid-row:not([hidden])')?.textContent;
    const look = () => (isThere() ? requestAnimationFrame(() => done(performance.now())) : requestAnimationFrame(look));
    look();
  });

const times = [];
for (let round = 0; round < o.rounds; round += 1) {
  const browser = await chromium.launch({ executablePath: o.browser, args: ['--no-sandbox', '--disable-gpu'] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, offline: true });
  const page = await context.newPage();
  await page.goto(pathToFileURL(file).href, { waitUntil: 'commit' });
  times.push(await page.evaluate(shown));
  await browser.close();
}

console.log(machine());
console.log(`file      ${(statSync(file).size / 1e6).toFixed(1)} MB`);
console.log(`shown     ${Math.round(median(times))} ms, of ${o.rounds} rounds ${times.map(Math.round).join(' ')}   budget 1500 ms`);
rmSync(folder, { recursive: true });
