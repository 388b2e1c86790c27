// Links: what they select is found by name in every step; any link gives a possible state.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { exactBytes } from '../../../src/format';
import type { Breakdown, Node, Op, Session, StepSummary, Tensor } from '../../../src/net/types';
import { randomOf } from '../../unit/make';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const title = () => fixture.inspector.locator('.inspection h2').innerText();

// Two steps with different graphs.
async function twoGraphs(fixture: PageFixture): Promise<readonly [StepSummary, StepSummary]> {
  const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps');
  const first = steps[0];
  const other = steps.find(({ template }) => template !== first?.template);
  if (!first || !other) throw new Error('all steps have one graph');
  return [first, other];
}

describe('a selection', () => {
  it('of a tensor has its name in the link, in every step and after a reload', async () => {
    const { page } = fixture;
    const session = await fixture.recorded();
    const name = 'blk.1.ffn_down.weight';
    for (const { step } of await twoGraphs(fixture)) {
      await fixture.show(session, `step=${step}`, `sel=t:${name}`);
      await expect.poll(title).toBe(name);
    }
    await page.reload();
    await expect.poll(title).toBe(name);
    expect(fixture.hash.get('sel')).toBe(`t:${name}`);
  });

  it('of a head has its layer and number, in every step and after a reload', async () => {
    const { page } = fixture;
    const session = await fixture.recorded();
    const rest = await fixture.get<Breakdown>('breakdown?by=head&limit=10000');
    const row = rest.rows.find(({ name }) => name === 'blk.2 head 1');
    const bytes = fixture.inspector.locator('.figure[data-figure="bytes"] b');
    const sum = (row?.all.bytes_read ?? 0) + (row?.all.bytes_written ?? 0);
    expect(sum).toBeGreaterThan(0);
    for (const { step } of await twoGraphs(fixture)) {
      await fixture.show(session, `step=${step}`, 'sel=h:2.1', 'p.map=y:head,v:bytes');
      await expect.poll(title).toBe('blk.2 head 1');
      await expect.poll(() => bytes.getAttribute('title')).toBe(exactBytes(sum));
    }
    await page.reload();
    await expect.poll(title).toBe('blk.2 head 1');
  });

  it('of a token moves with the step and survives a reload', async () => {
    const session = await fixture.recorded();
    await fixture.show(session, 'step=5', 'sel=k:9');
    const { tokens } = await fixture.get<{ tokens: { index: number; id: number }[] }>('tokens');
    const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps');
    await fixture.page.reload();
    const id = () => fixture.inspector.locator('dt', { hasText: /^id$/ }).locator('+ dd').textContent(); // prettier-ignore
    await expect.poll(id).toBe(String(tokens[9]?.id));
    await fixture.page.getByRole('button', { name: 'Next step' }).click();
    const next = steps[6]?.token_id ?? -1;
    await expect.poll(() => fixture.hash.get('sel')).toBe(`k:${next}`);
    await expect.poll(id).toBe(String(tokens[next]?.id));
  });
});

describe('a link to what the session does not have', () => {
  // No console error: PageFixture checks it.
  it.each([
    ['l=77', 'This model has no layer 77.'],
    ['step=99999', 'This session has no step 99999.'],
    ['sel=o:nothing', 'does not have the op nothing.'],
  ])('%s says so in one sentence', async (part, sentence) => {
    const { page } = fixture;
    const session = await fixture.recorded();
    await fixture.show(session, part);
    await expect.poll(() => page.getByText(sentence).count()).toBe(1);
    expect(await page.locator('.empty-error').count()).toBe(0);
  });
});

describe('a link with any values', () => {
  const VALUES: readonly (readonly [string, readonly string[]])[] = [
    ['step', ['0', '3', '99999', '999999999', '-1', 'x', '']],
    ['l', ['1', '3', '77', '999999999', '1.5']],
    ['ph', ['p', 'g', 'x']],
    ['sel', ['o:3', 'o:99999', 'a:1.2.0', 'a:9999.1.1', 'n:4', 'n:123456', 'o:ffn_out-1', 'o:Qcur-0~2', 'o:nothing', 'o:nothing.1.2', 'n:ffn_out-2', 'n:constructor', 'o:%2541%0A', 'o:', 't:nothing', 't:blk.0.attn_q.weight', 'x:900', 'k:2', 'k:99999', 'l:2', 'l:99', 'q:1', '']],
    ['full', ['map', 'graph', 'none']],
    ['tab', ['graph', 'graph,graph', 'nowhere']],
    ['r', ['token:2:5,layer:0:2', 'token:500:900,', 'layer:50:99', 'nothing:1:2', 'time:0:1', 'x']],
    ['speed', ['1', '0.0001', '7']],
    ['loop', ['1', '2']],
    ['q', ['kind:weight', 'layer:none', 'n:x', '-', ':', 'a:b:c', '%00', '*?*']],
    ['p.map', ['y:memory,x:all', 'y:file,x:time,cx:5:2', 'cx:9e15:9e15', 'only:5:1', 'v:nothing', 'lens,table']],
    ['p.graph', ['model,open:99_ffn.x_y', 'list', 'heat:bytes,all', 'hide:everything']],
    ['p.table', ['rows:accesses,all', 'rows:steps,cols:nothing', 'by:expert', 'by:layer,all', 'rows:x']],
    ['p.chat', ['cost', 'x']],
    ['o.table', ['-duration_ns', 'nothing', '-']],
    ['w.graph', ['0:1:0:1', '1:0', 'a:b', '-9e9:9e9:0:1']],
  ]; // prettier-ignore

  it.each([1, 2, 3])('leaves no impossible state (seed %i)', async (seed) => {
    const { page } = fixture;
    const random = randomOf(seed);
    const one = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
    const session = await fixture.recorded();
    const { n_layers: layers = 0, steps = 0 } = await fixture.get<Session>('');
    for (let round = 0; round < 12; round += 1) {
      const parts = VALUES.filter(() => random() < 0.4).map(([key, values]) => `${key}=${one(values) ?? ''}`); // prettier-ignore
      await fixture.show(session, ...parts);
      const link = parts.join('&');
      // What the link has after the page read it is possible.
      await expect
        .poll(() => Number(fixture.hash.get('step') ?? 0), { message: link })
        .toBeLessThan(steps);
      await expect
        .poll(() => Number(fixture.hash.get('l') ?? 0), { message: link })
        .toBeLessThan(layers);
      const { steps: all } = await fixture.get<{ steps: StepSummary[] }>('steps');
      await expect
        .poll(
          () => {
            const [step, phase] = [fixture.hash.get('step'), fixture.hash.get('ph')];
            return step === null || phase === null || all[Number(step)]?.phase.startsWith(phase);
          },
          { message: link },
        )
        .toBe(true);
      // A selected op or node is one of the step, by its name, or the inspector says that there is none.
      const { tensors } = await fixture.get<{ tensors: Tensor[] }>(
        `templates/${all[Number(fixture.hash.get('step') ?? steps - 1)]?.template ?? 0}/tensors?limit=10000`,
      );
      const names = new Set(tensors.map(({ tensor_name }) => tensor_name));
      const isLost = () => page.getByText(/does not have (this|the) (op|node)/).count();
      await expect
        .poll(
          async () => {
            const output = /^[on]:(.*)$/s
              .exec(fixture.hash.get('sel') ?? '')?.[1]
              ?.replace(/~\d+$/, '');
            return output === undefined || names.has(output) || (await isLost()) > 0;
          },
          { message: link },
        )
        .toBe(true);
      // No panel has failed; one that has nothing to show says so.
      expect(await page.getByRole('tabpanel').count(), link).toBeGreaterThan(0);
      await expect.poll(() => page.getByText(/^Loading|…$/).count(), { message: link }).toBe(0);
      expect(await page.getByText(/ failed\.$/).count(), link).toBe(0);
      expect(JSON.stringify(await page.locator('.empty-error').allInnerTexts()), link).toBe('[]');
    }
    // The page still works.
    await page.keyboard.press('Escape');
    await fixture.show(session, 'step=1');
    await page.getByRole('grid', { name: 'Ops of step 1' }).waitFor();
  });
});

describe('a selection in another graph', () => {
  let folder = '';
  // The graphs of the encoder and the decoder differ.
  const fixture = PageFixture.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-models-'));
    return ['-m', await makeModel(folder, 't5')];
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });

  it.each(['op', 'node'] as const)('of an %s is found again in another graph', async (kind) => {
    const session = await fixture.recorded();
    const [a, b] = await twoGraphs(fixture);
    const ops = async ({ step }: StepSummary) =>
      (await fixture.get<{ ops: Op[] }>(`steps/${step}/ops?limit=1000`)).ops;
    const nodes = async ({ template }: StepSummary) =>
      (await fixture.get<{ nodes: Node[] }>(`templates/${template ?? 0}/nodes?limit=10000`)).nodes;
    // An output that has another index in the other graph.
    const [from, to] =
      kind === 'op'
        ? [await ops(a), await ops(b)].map((all) => all.map((one) => [one.tensor_name, one.op] as const))
        : [await nodes(a), await nodes(b)].map((all) => all.map((one) => [one.name, one.node] as const)); // prettier-ignore
    const times = (all: typeof from, name: string) => all?.filter(([one]) => one === name).length;
    const moved = from?.flatMap(([name, index]) => {
      const other = to?.find(([one]) => one === name)?.[1];
      const isUnique = times(from, name) === 1 && times(to, name) === 1;
      return isUnique && other !== undefined && other !== index ? [{ name, index, other }] : [];
    })[0];
    if (!moved) throw new Error('no output moved');
    const lost = from.find(([name]) => times(to, name) === 0)?.[0];
    if (lost === undefined) throw new Error('both graphs have all outputs');
    const letter = kind.slice(0, 1);
    const { page, inspector } = fixture;
    // As it is shown: the step, the name, and its index in the step.
    const seen = async () => {
      const [index] = await inspector.getByText(/^\d+ of the (step|graph)$/).allTextContents();
      return [fixture.hash.get('step'), fixture.hash.get('sel'), index?.split(' ')[0]];
    };
    const link = `${letter}:${moved.name}`;
    // A link with an index, as before, and one with the name.
    await fixture.show(session, `step=${a.step}`, `sel=${letter}:${moved.index}`);
    await expect.poll(seen).toEqual([String(a.step), link, String(moved.index)]);
    await fixture.show(session, `step=${b.step}`, `sel=${link}`);
    await expect.poll(seen).toEqual([String(b.step), link, String(moved.other)]);
    // The name stays selected in each step.
    await fixture.rows('Steps');
    const steps = page.getByRole('grid', { name: 'Steps of the session' });
    const select = (step: number) => steps.locator(`.vgrid-row[data-index="${step}"]`).click();
    await select(a.step);
    await expect.poll(seen).toEqual([String(a.step), link, String(moved.index)]);
    await page.goBack();
    await expect.poll(seen).toEqual([String(b.step), link, String(moved.other)]);
    // A step that does not have it says so, and the next one shows it again.
    await fixture.show(session, `step=${a.step}`, `sel=${letter}:${lost}`, 'p.table=rows:steps');
    await expect.poll(async () => (await seen())[2]).toBeDefined();
    await select(b.step);
    await inspector.getByText(`Step ${b.step} does not have the ${kind} ${lost}.`).waitFor();
    expect(fixture.hash.get('sel')).toBe(`${letter}:${lost}`);
    await select(a.step);
    await expect.poll(async () => (await seen())[1]).toBe(`${letter}:${lost}`);
    await expect.poll(() => inspector.getByText('does not have').count()).toBe(0);
  });
});
