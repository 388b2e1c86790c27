// The answers of a llama-server with slots and a draft model, recorded by `tt attach`: the text of each
// request is what the server answered; tokens of rejected drafts are struck through, and not copied.
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Session, Token } from '../../../src/net/types';
import { PATIENCE_MS } from '../../patience';
import { freePort } from '../support/harness';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

const program = join(dirname(process.env.TT_SERVER ?? ''), 'tt');
const SLOTS = 2;
let folder = '';
interface Said {
  readonly content: string;
  readonly id_slot: number;
}
let said: readonly Said[] = []; // what the server answered

// Runs a llama-server that is recorded, and asks all slots at once, twice.
async function record(model: string, draft: string): Promise<string> {
  const traces = join(folder, 'traces');
  const port = await freePort();
  const child = spawn(
    program,
    `attach -o ${traces} -- llama-server -m ${model} -md ${draft} --spec-type draft-simple -np ${SLOTS} -c 1024 --host 127.0.0.1 --port ${port} -t 1`.split(
      ' ',
    ),
    { stdio: 'ignore' },
  );
  const ended = new Promise((done) => child.once('exit', done));
  const url = `http://127.0.0.1:${port}`;
  const isReady = () => fetch(`${url}/health`).then(({ ok }) => ok, () => false); // prettier-ignore
  await vi.waitUntil(isReady, { timeout: PATIENCE_MS, interval: 50 });
  const ask = async (prompt: string, tokens: number): Promise<Said> => {
    const request = { prompt, n_predict: tokens, ignore_eos: true, temperature: 0 };
    const answer = await fetch(`${url}/completion`, { method: 'POST', body: JSON.stringify(request) }); // prettier-ignore
    return (await answer.json()) as Said;
  };
  const round = (n: number) =>
    Promise.all(Array.from({ length: SLOTS }, (_, slot) => ask(`Story ${slot} of ${n}, about boats`, 24 + 3 * slot + n))); // prettier-ignore
  said = [...(await round(1)), ...(await round(2))];
  child.kill('SIGTERM');
  await ended;
  return traces;
}

const fixture = PageFixture.use(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-answers-'));
  const model = await makeModel(folder, 'small');
  const draft = join(folder, 'draft.gguf');
  await promisify(execFile)(program, ['model', 'small', '--seed', '7', '-q', '-o', draft]);
  return [await record(model, draft), '-m', model];
});
afterAll(() => rm(folder, { recursive: true }));

const textOf = (tokens: readonly Token[], drafts: readonly Token['draft'][]): string =>
  tokens.filter(({ draft }) => drafts.includes(draft)).map(({ text }) => text).join(''); // prettier-ignore
const sorted = (text: string): readonly string[] => Array.from(text).sort();
const squeezed = (text: string): string => text.replace(/\s+/g, '');

describe('a session of several requests and drafts', () => {
  it('has each answer as the server gave it, with rejected drafts struck through and not copied', async () => {
    const { page } = fixture;
    const { sessions } = await fixture.rest<{ sessions: Session[] }>('sessions');
    const whole = await Promise.all(sessions.map(({ id }) => fixture.rest<Session>(`sessions/${id}`))); // prettier-ignore
    const target = whole.find(({ facts }) => facts?.['attach.role'] === 'target')?.id ?? '';
    await fixture.show(target);
    const { tokens } = await fixture.get<{ tokens: Token[] }>('tokens?limit=10000');
    // The server also evaluates tokens of no request, when it starts.
    const answers = tokens.filter(({ generated, sequence }) => generated && sequence !== null);
    const sequences = [...new Set(answers.map(({ sequence }) => sequence))];
    expect(sequences.length).toBe(said.length);
    const left = [...said];
    const kept: string[] = [];
    let struck = '';
    for (const sequence of sequences) {
      const own = answers.filter((one) => one.sequence === sequence);
      const article = page.getByRole('article', { name: `Request ${sequence}`, exact: true });
      const answer = article.locator('.token-text[data-part=answer]');
      await expect.poll(() => answer.textContent()).toBe(textOf(own, [null, 'accepted', 'rejected'])); // prettier-ignore
      // The last token of an answer is not evaluated, and the result of its last draft is unknown: the
      // server said as much more.
      const text = textOf(own, [null, 'accepted']);
      const of = left.findIndex(({ content }) => content.startsWith(text));
      expect(of, `${sequence}: ${text}`).toBeGreaterThanOrEqual(0);
      const [one] = left.splice(of, 1);
      await article.getByText(`slot ${one?.id_slot} of the server`, { exact: true }).waitFor();
      expect(text.length).toBeGreaterThan(20);
      kept.push(text);
      struck += textOf(own, ['rejected']);
      const rejected = own.filter(({ draft }) => draft === 'rejected').length;
      const count = `${rejected} rejected draft token${rejected === 1 ? '' : 's'}, struck through`;
      expect(await article.getByText(count, { exact: true }).count()).toBe(rejected > 0 ? 1 : 0);
      // The copied text is the answer alone.
      await answer.evaluate((element) => getSelection()?.selectAllChildren(element));
      await page.keyboard.press('Control+C');
      expect(squeezed(await page.evaluate(() => navigator.clipboard.readText()))).toBe(squeezed(text)); // prettier-ignore
    }
    expect(left).toEqual([]);
    expect(struck).not.toBe('');
    const marked = await page.evaluate(() =>
      [...(CSS.highlights.get('token-rejected') ?? [])].map(({ startContainer, startOffset, endOffset }) =>
        startContainer.textContent?.slice(startOffset, endOffset),
      ),
    ); // prettier-ignore
    expect(sorted(marked.join(''))).toEqual(sorted(struck));
    // A selection over all answers is copied without rejected drafts, and stays.
    const selected = await fixture.log.evaluate((log) => {
      getSelection()?.selectAllChildren(log);
      return String(getSelection());
    });
    await page.keyboard.press('Control+C');
    const copied = squeezed(await page.evaluate(() => navigator.clipboard.readText()));
    for (const text of kept) expect(copied).toContain(squeezed(text));
    expect(copied.length).toBe(squeezed(selected).length - squeezed(struck).length);
    expect(await page.evaluate(() => String(getSelection()))).toBe(selected);
    // The program has the same words in REST, the list, above the answers and in the summary.
    const program = whole.find(({ id }) => id === target)?.program;
    expect(program?.text).toMatch(/^llama-server, process \d+, ggml \d+\.\d+\.\d+$/);
    const row = page.locator('.session[data-current=true] .session-program');
    expect(await row.textContent()).toBe('llama-server');
    expect(await row.getAttribute('title')).toBe(program?.text);
    await page
      .locator('.recorded')
      .getByText(program?.text ?? '', { exact: true })
      .waitFor();
    await fixture.inspector.getByText(`Recorded program: ${program?.text}`).waitFor();
    // The tooltip says what a token is.
    const draft = tokens.find((one) => one.draft === 'rejected' && /\S$/.test(one.text));
    const place = await page.evaluate((text) => {
      const ranges = [...(CSS.highlights.get('token-rejected') ?? [])];
      const found = ranges.find(({ startContainer, startOffset }) => startContainer.textContent?.startsWith(text, startOffset)); // prettier-ignore
      const range = document.createRange();
      if (found) {
        range.setStart(found.startContainer, found.startOffset + text.length - 1);
        range.setEnd(found.startContainer, found.startOffset + text.length);
      }
      range.startContainer.parentElement?.scrollIntoView({ block: 'center' });
      const { x, y, width, height } = range.getClientRects()[0] ?? new DOMRect();
      return { x: x + width / 2, y: y + height / 2 };
    }, draft?.text ?? '');
    await page.mouse.move(place.x, place.y);
    await page.locator('.token-text[title*="rejected draft"]').waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
  });
});
