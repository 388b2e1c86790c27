// What a file asks for a session before it is shown without a server (docs/exports.md). The build
// writes the list into viewer.html; the exporter (server/page_file) asks each question for every
// step, template or layer of the session, in this order, until the file is full: the most useful
// ones come first. The requests are those of the page, made by its own functions.
import { signal } from '@preact/signals';
import { createApi, MAX_PAGE_ROWS, type Api } from '../net/api';
import type { Ask, Send } from '../net/call';
import type { PictureQuery } from '../net/types';
import { CHARTS } from '../panels/analytics/all_charts';
import { scopeOf } from '../panels/analytics/spec';
import { figuresQuery } from '../panels/map/map_pictures';
import { PRESETS, tracksOf, VALUES, Y_AXES } from '../panels/map/map_options';
import { bufferSql } from '../panels/map/buffer_tensors';
import { askMeanAttention, LOOK_CHUNK } from '../panels/chat/token_attention';
import { askCaptured, askOutput } from '../panels/values/captured';
import { GROUPS } from '../panels/table/table_options';
import { LAST_STEPS, STEPS_PAGE, TOKENS_PAGE } from '../state/session/session_feed';
import type { OpenSession } from '../state/session/open_session';
import { emptyView, type PhaseFilter } from '../state/view/view';

export type Each =
  | 'once'
  | 'tokens' // every so many tokens, from {from} to {to}
  | 'steps' // every so many steps, from {from}, in sessions of more than `beyond`
  | 'step' // {step}, and {next} after it
  | 'template' // {template}, and {step}, the first one of the template
  | 'layer' // of every template: {layer}, {template}, {step}
  | 'output'; // captured: {step}, {op}, {output}

export interface Question {
  readonly each: Each;
  readonly every?: number;
  readonly beyond?: number;
  readonly needed?: true; // the session does not open without it
  readonly captured?: true; // only of a session with captured values
  readonly method: Ask['method'];
  readonly target: string;
  readonly body?: string;
}

// Stand for what the exporter fills in: numbers that nothing else in a request has.
const SESSION = '~session~';
const [STEP, FROM, TEMPLATE, LAYER, OP, TO] = [
  7_000_000_001, 7_100_000_001, 7_200_000_001, 7_300_000_001, 7_400_000_001, 7_500_000_001,
];
const OUTPUT = '__output__';
const PLACEHOLDERS: readonly (readonly [string, string])[] = [
  [SESSION, '{session}'],
  [String(STEP), '{step}'],
  [String(STEP + 1), '{next}'],
  [String(FROM), '{from}'],
  [String(TEMPLATE), '{template}'],
  [String(LAYER), '{layer}'],
  [String(OP), '{op}'],
  [String(TO), '{to}'],
  [OUTPUT, '{output}'],
];

const filled = (text: string): string =>
  PLACEHOLDERS.reduce((all, [from, to]) => all.replaceAll(from, to), text);

// Pictures of so many pixels have every step, tensor, op and layer of most sessions; those over time
// and bytes are as fine as a large screen.
export const UNITS = { width: 4096, height: 4096 } as const;
export const PIXELS = { width: 2048, height: 1024 } as const;

const WHOLE = { x: null, y: null } as const; // what is in view

const PHASES: readonly PhaseFilter[] = ['all', 'generate', 'prompt'];

// A chart may be of the shown layer, or of the shown step.
const eachOf = (text: string): Each =>
  text.includes(String(LAYER)) ? 'layer' : text.includes(String(STEP)) ? 'step' : 'once';

type Axis<Name extends 'x' | 'y'> = NonNullable<PictureQuery[Name]>;
type Picture = Partial<PictureQuery> & { readonly x: Axis<'x'>; readonly y: Axis<'y'> };

function pictures(): readonly Picture[] {
  const numeric = ['time', 'file', 'buffer'];
  const sized = (picture: Picture): Picture => ({
    ...picture,
    ...([picture.x, picture.y].some((axis) => numeric.includes(axis)) ? PIXELS : UNITS),
    ...(picture.x === 'all' ? { width: 1, height: UNITS.height } : {}),
  });
  const ofAxes = (x: Axis<'x'>, y: Axis<'y'>): readonly Picture[] =>
    VALUES.map((value) => sized({ x, y, value }));
  const presets = PRESETS.flatMap(({ options: { x, y } }) => tracksOf(y).flatMap((track) => ofAxes(x, track))); // prettier-ignore
  // The inspector's courses of what is selected, which are rows of these.
  const ofSteps = Y_AXES.flatMap((y) => (y === 'memory' ? [] : ofAxes('step', y)));
  const ofTokens = Y_AXES.flatMap((y) => (y === 'memory' ? [] : ofAxes('token', y)));
  const courses = VALUES.map((value) => sized({ x: 'step', y: 'all', value }));
  const all = [...presets, ...courses, ...ofSteps, ...ofTokens];
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
}

export async function questions(): Promise<readonly Question[]> {
  const list: Question[] = [];
  const add = async (
    shape: Pick<Question, 'each' | 'every' | 'beyond' | 'needed' | 'captured'>,
    ask: (api: Api, session: OpenSession) => unknown,
  ): Promise<void> => {
    const asks: Ask[] = [];
    const send: Send = (one) => {
      asks.push(one);
      return Promise.reject(new Error('There is no server.'));
    };
    const api = createApi(send, (once) => once());
    // What the charts use of a session.
    const session = {
      id: SESSION,
      context: { api },
      answeredSteps: signal(0),
      active: signal(false),
    };
    await ask(api, session as unknown as OpenSession);
    for (const { method, target, body } of asks)
      list.push({
        ...(shape.each === 'once' ? { ...shape, each: eachOf(`${target}${body ?? ''}`) } : shape),
        method,
        target: filled(target),
        ...(body === null ? {} : { body: filled(body) }),
      });
  };
  const needed = true;
  await add({ each: 'once', needed }, (api) => api.session(SESSION));
  await add({ each: 'once', needed }, (api) => api.steps(SESSION, { last: LAST_STEPS }));
  await add({ each: 'steps', every: STEPS_PAGE, beyond: LAST_STEPS, needed }, (api) =>
    api.steps(SESSION, { from: FROM, limit: STEPS_PAGE }),
  );
  await add({ each: 'tokens', every: TOKENS_PAGE, needed }, (api) =>
    api.tokens(SESSION, FROM, TOKENS_PAGE),
  );
  await add({ each: 'template', needed }, (api) => api.nodes(SESSION, TEMPLATE));
  await add({ each: 'template', needed }, (api) => api.tensors(SESSION, TEMPLATE));

  const once = { each: 'once' } as const;
  const sized = (picture: Picture): PictureQuery => ({ ...UNITS, ...picture });
  await add(once, (api) =>
    api.heatmap(SESSION, { x: 'all', y: 'all', value: 'faults', width: 1, height: 1 }),
  );
  await add(once, (api) => api.findings(SESSION));
  await add(once, (api) => api.validation(SESSION));
  await add(once, (api) => api.conditions(SESSION));
  await add({ each: 'step' }, (api) => api.ops(SESSION, STEP));
  await add({ each: 'template' }, (api) => api.graph(SESSION, TEMPLATE));
  await add({ each: 'layer' }, (api) => api.layer(SESSION, STEP, LAYER));
  await add({ each: 'template' }, (api) => api.query(SESSION, bufferSql(STEP), MAX_PAGE_ROWS));
  const addPicture = async (picture: PictureQuery): Promise<void> => {
    await add(once, (api) => api.heatmap(SESSION, picture));
    if (picture.x !== 'step' && picture.x !== 'token') return;
    await add(once, (api) => api.heatmap(SESSION, figuresQuery(picture, WHOLE)));
  };
  for (const picture of pictures()) await addPicture(sized(picture));
  for (const phase of PHASES) {
    const part = phase === 'all' ? {} : { phase };
    await add(once, (api) => api.sequentiality(SESSION, { ...part, limit: 0 }));
    // `limit` and order are those of the rows that the page shows of it.
    for (const by of GROUPS)
      if (by !== 'token')
        await add(
          once,
          (api) =>
          api.breakdown(SESSION, { ...part, by, sort: '-time', step_times: true, limit: MAX_PAGE_ROWS }), // prettier-ignore
        );
    for (const by of ['op', 'all'] as const)
      await add(once, (api) => api.breakdown(SESSION, { ...part, by, limit: MAX_PAGE_ROWS }));
    for (const { request } of CHARTS)
      await add(once, (_, session) => {
        const { asks, load } = request(scopeOf({ ...emptyView, phase, layer: LAYER }, 0, STEP));
        return asks ? Promise.all(asks(session)) : load(session);
      });
    if (phase === 'all') continue;
    for (const picture of pictures()) await addPicture({ ...sized(picture), phase });
  }
  await add(once, (_, session) => askCaptured(session, null));
  await add({ each: 'output' }, (_, session) => askCaptured(session, STEP));
  await add({ each: 'output' }, (_, session) =>
    askOutput(session, { step: STEP, op: OP, output: OUTPUT }),
  );
  await add({ each: 'tokens', every: LOOK_CHUNK, captured: true }, (_, session) =>
    askMeanAttention(session, { layer: null, head: null }, { from: FROM, to: TO }),
  );
  const ofStep = { from_step: STEP, to_step: STEP + 1 };
  const step = { each: 'step' } as const;
  await add(step, (api) => api.breakdown(SESSION, { ...ofStep, by: 'op', limit: MAX_PAGE_ROWS }));
  await add(step, (api) => api.breakdown(SESSION, { ...ofStep, by: 'all', limit: 0 }));
  await add(step, (api) => api.accessesOfStep(SESSION, STEP));
  await add(step, (api) => api.residency(SESSION, STEP));
  await add(step, (api) => api.sequentiality(SESSION, { ...ofStep, limit: 0 }));
  for (const by of GROUPS)
    if (by !== 'token' && by !== 'phase')
      await add(step, (api) =>
        api.breakdown(SESSION, { ...ofStep, by, sort: '-time', limit: MAX_PAGE_ROWS }),
      );
  // Two views may ask the same.
  return [...new Map(list.map((one) => [`${one.method} ${one.target}\n${one.body ?? ''}`, one])).values()]; // prettier-ignore
}
