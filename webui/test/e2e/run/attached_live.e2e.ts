// The page of `tt attach --live`: the sessions of the program appear, grow and end in the list without
// a click, and so does the open session.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { copyFile, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import type { Token } from '../../../src/net/types';
import { PATIENCE_MS } from '../../patience';
import { freePort } from '../support/harness';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

const program = join(dirname(process.env.TT_SERVER ?? ''), 'tt');
let folder = '';
let model = '';
const fixture = PageFixture.use(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-live-'));
  model = await makeModel(folder, 'small');
  return [];
});
let child: ChildProcess | null = null;
let port = 0;

afterEach(async () => {
  const ended = new Promise((done) => child?.once('exit', done));
  if (child?.kill('SIGTERM') === true) await ended;
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let printed = ''; // by tt and the server

// Starts a llama-server that is recorded. Returns when it answers.
async function attach(...options: readonly string[]): Promise<void> {
  // The server of the fixture shows the folder that the program is recorded into, as that of --live.
  await attachInto(fixture.server.data, ...options);
}

async function attachInto(data: string, ...options: readonly string[]): Promise<void> {
  port = await freePort();
  const command = `llama-server -m ${model} -np 1 -c 1024 --host 127.0.0.1 --port ${port} -t 1`;
  const output = ['attach', ...options, '-o', data, '--'];
  printed = '';
  const started = spawn(program, [...output, ...command.split(' ')], { stdio: ['ignore', 'ignore', 'pipe'] }); // prettier-ignore
  started.stderr.on('data', (part) => {
    printed += String(part);
  });
  child = started;
  const isReady = () => fetch(`http://127.0.0.1:${port}/health`).then(({ ok }) => ok, () => false); // prettier-ignore
  await vi.waitUntil(isReady, { timeout: PATIENCE_MS, interval: 50 });
}

async function ask(prompt: string, tokens: number): Promise<void> {
  const body = JSON.stringify({ prompt, n_predict: tokens, ignore_eos: true, temperature: 0 });
  const answer = await fetch(`http://127.0.0.1:${port}/completion`, { method: 'POST', body });
  await answer.json();
}

// What is used of the package openai.
interface Client {
  readonly chat: {
    readonly completions: {
      create: (body: object) => Promise<
        AsyncIterable<{
          readonly choices: readonly { readonly delta: { readonly content?: string | null } }[];
        }>
      >;
    };
  };
}
type ClientClass = new (options: { readonly baseURL: string; readonly apiKey: string }) => Client;

// From the package registry; null: that does not answer.
async function openai(): Promise<ClientClass | null> {
  const run = promisify(execFile);
  try {
    await run('npm', ['pack', '--silent', 'openai@7.59.0'], { cwd: folder });
  } catch {
    return null;
  }
  await run('tar', ['xzf', 'openai-7.59.0.tgz'], { cwd: folder });
  const file = pathToFileURL(join(folder, 'package', 'index.mjs')).href;
  return ((await import(/* @vite-ignore */ file)) as { default: ClientClass }).default;
}

const squeezed = (text: string | null): string => (text ?? '').replace(/\s+/g, '');
const rows = () => fixture.page.locator('.sessions .session');

describe('the list of sessions', () => {
  it('shows each request of an attached program when it begins, and its figures when it has ended', async () => {
    await attach('--per-request');
    const { page } = fixture;
    const before = await rows().count();
    await ask('Once upon a time', 12);
    await expect.poll(() => rows().count()).toBe(before + 1);
    await ask('The red fox', 9);
    await expect.poll(() => rows().count()).toBe(before + 2);
    await page.getByText('The red fox').first().waitFor();
    // After 2 seconds without a step, the last request is over.
    await expect.poll(async () => (await rows().allTextContents()).join('\n')).not.toContain('running'); // prettier-ignore
  });

  it('shows the answer to the openai client while it is written', async ({ skip }) => {
    const OpenAI = await openai();
    if (OpenAI === null) return skip('the package registry does not answer');
    fixture.expectStatus(404); // the page asks whether this server runs the session
    await attach('--per-request');
    const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'none' });
    const stream = await client.chat.completions.create({
      model: 'small',
      messages: [{ role: 'user', content: 'Tell me of a boat' }],
      max_tokens: 500,
      temperature: 0,
      ignore_eos: true,
      stream: true,
    });
    let text = '';
    const answered = (async () => {
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? '';
    })();
    const running = rows().filter({ hasText: 'running' });
    await running.locator('.session-open').click();
    const answer = fixture.page.locator('.token-text[data-part=answer]');
    await expect.poll(async () => squeezed(await answer.textContent()).length).toBeGreaterThan(20);
    await answered;
    // After 2 seconds without a step, the request is over. Its last token was not evaluated.
    await expect.poll(() => running.count()).toBe(0);
    await expect.poll(async () => squeezed(text).startsWith(squeezed(await answer.textContent()))).toBe(true); // prettier-ignore
    expect(squeezed(await answer.textContent()).length).toBeGreaterThan(squeezed(text).length - 20);
    const program = fixture.page.locator('.session[data-current=true] .session-program');
    expect(await program.textContent()).toBe('llama-server');
    await fixture.inspector
      .getByText(/^Recorded program: llama-server, process \d+, ggml /)
      .waitFor();
  });

  it('follows a session that grows, while another one is open', async () => {
    await fixture.recorded(3);
    await attach();
    await ask('Once upon a time', 5);
    const row = rows().filter({ hasText: 'llama-server' }).filter({ hasText: 'running' });
    await row.waitFor();
    await ask('The red fox', 40);
    const tokens = async () => Number(/(\d+) tokens/.exec((await row.textContent()) ?? '')?.[1]);
    await expect.poll(tokens).toBeGreaterThan(44);
    child?.kill('SIGTERM');
    await expect.poll(() => row.count()).toBe(0);
    // A file that another program copies into the folder, and removes.
    const before = await rows().count();
    const [file] = (await readdir(fixture.server.data)).filter((name) => name.endsWith('.ttrace'));
    const copy = join(fixture.server.data, 'copied.ttrace');
    await copyFile(join(fixture.server.data, file ?? ''), copy);
    await expect.poll(() => rows().count()).toBe(before + 1);
    await rm(copy);
    await expect.poll(() => rows().count()).toBe(before);
  });

  it('follows the open session of an attached program, and says what it found when that has ended', async () => {
    const { page } = fixture;
    fixture.expectStatus(404); // the page asks whether this server runs the session
    await attach();
    await ask('Once upon a time', 5);
    await rows().filter({ hasText: 'running' }).locator('.session-open').click();
    await page.getByText('When this run ends').waitFor();
    const accesses = fixture.inspector.locator('.figure[data-figure="accesses"] b');
    const first = await accesses.textContent();
    await ask('The red fox', 40);
    await expect.poll(() => accesses.textContent()).not.toBe(first);
    child?.kill('SIGTERM');
    await fixture.inspector.getByLabel('Headline').waitFor();
  });
});

describe('the page of tt attach --live', () => {
  it('opens on the newest session, marks reused tokens, and says how the program ended', async () => {
    const { page } = fixture;
    fixture.expectStatus(404); // the page asks whether this server runs the session
    fixture.spoilPage();
    const traces = join(folder, 'live');
    await attachInto(traces, '--live', '0', '--per-request');
    const address = /shown on (http:\S+)/.exec(printed)?.[1] ?? '';
    await page.goto(address);
    await page.getByText('Make a request to llama-server').waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    const example = await page.locator('.composer code').textContent();
    const [, url = '', body = ''] = /^curl (\S+) -d '(.*)'$/.exec(example ?? '') ?? [];
    await (await fetch(url, { method: 'POST', body })).json();
    await expect.poll(async () => (await fixture.answer.textContent())?.length).toBeGreaterThan(20);
    // After 2 seconds without a step, the request is over: no cursor waits for more.
    await expect.poll(() => fixture.answer.getAttribute('data-active')).toBe('false');

    const { prompt } = JSON.parse(body) as { prompt: string };
    await ask(`${prompt} there was a boat`, 8);
    await expect.poll(() => rows().count()).toBe(2);
    await expect.poll(async () => (await rows().allTextContents()).join('\n')).not.toContain('running'); // prettier-ignore
    await rows().first().locator('.session-open').click();
    const shown = page.locator('.prompt-tokens .dim');
    await expect
      .poll(() => shown.textContent())
      .toMatch(/^\d+ tokens, \d+ reused from the KV cache$/);
    const { tokens } = (await (await fetch(`${address}/api/v1/sessions/${fixture.session}/tokens?limit=100`)).json()) as { tokens: Token[] }; // prettier-ignore
    const reused = tokens.filter((token) => token.reused);
    expect(reused.length).toBe(Number(/, (\d+)/.exec((await shown.textContent()) ?? '')?.[1]));
    const marked = await page.evaluate(() =>
      [...(CSS.highlights.get('token-reused') ?? [])]
        .map(({ startContainer, startOffset, endOffset }) => startContainer.textContent?.slice(startOffset, endOffset))
        .join(''),
    ); // prettier-ignore
    expect(marked).toBe(reused.map(({ text }) => text).join(''));
    expect(squeezed(marked)).not.toBe('');

    const pid = child?.pid ?? 0;
    for (const one of (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8'))
      .trim()
      .split(' ')) {
      if ((await readFile(`/proc/${one}/comm`, 'utf8')) === 'llama-server\n') process.kill(Number(one), 'SIGTERM'); // prettier-ignore
    }
    const said = `llama-server ended with status 0. 2 sessions are recorded in ${traces}. To see them again: tt-server --no-model --data-dir ${traces}`;
    await page.locator('.away-ended').getByText(said, { exact: true }).waitFor();
    expect(await rows().count()).toBe(2);
    const ended = new Promise((done) => child?.once('exit', done));
    child?.kill('SIGINT');
    expect(await ended).toBe(0);
    await page.getByRole('alert').getByText('tt attach has ended.').waitFor();
    fixture.errors = fixture.errors.filter((text) => !text.includes('ERR_CONNECTION'));
    fixture.foreignRequests = fixture.foreignRequests.filter((one) => !one.startsWith(address));
  });
});
