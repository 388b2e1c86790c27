// Answers that follow from those that a file holds: a part of a list, of a picture, another order.
// Figures are the held ones; nothing is computed that a server would compute otherwise.
import type { Ask } from '../net/call';
import { decodePicture, pictureFrame, type Picture } from '../net/frames';
import { STEPS_PAGE } from '../state/session/session_feed';
import { accessRows } from './access_statement';
import type { Answers, HeldAccess } from './answers';
import { partOfPicture } from './part_of_picture';

type Rule = (ask: Ask, answers: Answers) => Promise<Response | null> | null;

const RULES: readonly Rule[] = [otherSessions, pageOfSteps, sameTemplate, accessesOfOp, accessStatement, picture, totals]; // prettier-ignore

// Null: nothing held answers it.
export const derivedFrom =
  (answers: Answers) =>
  async (ask: Ask): Promise<Response | null> => {
    for (const rule of RULES) {
      const answer = await rule(ask, answers);
      if (answer) return answer;
    }
    return null;
  };

function otherSessions({ target }: Ask): Promise<Response> | null {
  return target === 'sessions' || target.startsWith('sessions?')
    ? Promise.resolve(Response.json({ total: 0, sessions: [] }))
    : null;
}

// The held pages begin at multiples of their size. More rows than asked for do no harm.
function pageOfSteps({ target }: Ask, answers: Answers): Promise<Response> | null {
  const match = /^(sessions\/[^/]+\/steps)\?from=(\d+)&/.exec(target);
  if (!match?.[1]) return null;
  const from = Math.floor(Number(match[2]) / STEPS_PAGE) * STEPS_PAGE;
  return answers.get(`GET ${match[1]}?from=${from}&limit=${STEPS_PAGE}&format=columns`);
}

// Steps with the same graph share its layers and the tensors in its buffers.
function sameTemplate({ method, target, body }: Ask, answers: Answers): Promise<Response> | null {
  const ofLayer = /^(sessions\/[^/]+\/steps\/)(\d+)(\/layers\/\d+)$/.exec(target);
  if (ofLayer) {
    const first = answers.same[Number(ofLayer[2])];
    return first === undefined ? null : answers.get(`${method} ${ofLayer[1] ?? ''}${first}${ofLayer[3] ?? ''}`); // prettier-ignore
  }
  const step = /WHERE step = (\d+) AND memory_source IN/.exec(body ?? '');
  const first = answers.same[Number(step?.[1])];
  if (body === null || !step || first === undefined) return null;
  const shared = body.replace(step[0], step[0].replace(step[1] ?? '', String(first)));
  return answers.get(`${method} ${target}\n${shared}`);
}

// ---- Accesses -------------------------------------------------------------------------

// Null: not held, or not all of them.
async function accessesOf(
  session: string,
  step: number,
  answers: Answers,
): Promise<readonly HeldAccess[] | null> {
  const key = answers.keys.find((one) => one.startsWith(`GET ${session}/steps/${step}/accesses?`));
  const response = key === undefined ? null : await answers.get(key);
  if (!response?.ok) return null;
  const page = (await response.json()) as { total: number; accesses: readonly HeldAccess[] };
  return page.total === page.accesses.length ? page.accesses : null;
}

async function accessesOfOp({ target }: Ask, answers: Answers): Promise<Response | null> {
  const match = /^(sessions\/[^/]+)\/steps\/(\d+)\/accesses\?op=(\d+)&limit=(\d+)$/.exec(target);
  const all = match && (await accessesOf(match[1] ?? '', Number(match[2]), answers));
  if (!all) return null;
  const own = all.filter(({ op }) => op === Number(match[3]));
  return Response.json({ total: own.length, accesses: own.slice(0, Number(match[4])) });
}

// The rows of the table of accesses.
async function accessStatement({ target, body }: Ask, answers: Answers): Promise<Response | null> {
  const session = /^(sessions\/[^/]+)\/query$/.exec(target)?.[1];
  if (session === undefined || body === null) return null;
  const { sql } = JSON.parse(body) as { sql: string };
  const step = /^SELECT .+ FROM access WHERE step = (\d+)\b/.exec(sql)?.[1];
  const all = step === undefined ? null : await accessesOf(session, Number(step), answers);
  const rows = all && accessRows(sql, all);
  return rows && Response.json(rows);
}

// ---- Pictures and totals --------------------------------------------------------------

const split = (target: string): { readonly path: string; readonly query: URLSearchParams } => {
  const [path = '', text = ''] = target.split('?');
  return { path, query: new URLSearchParams(text) };
};

// What an answer is of: the path and the query without what only chooses a part or an order of it.
function subject(target: string, without: readonly string[]): string {
  const { path, query } = split(target);
  for (const name of without) query.delete(name);
  query.sort();
  return `${path}?${query.toString()}`;
}

type SizeOf = (query: URLSearchParams) => number;

// By answers and path: for each subject, the key of the held answer that has most.
const known = new WeakMap<Answers, Map<string, ReadonlyMap<string, string>>>();

function keysBySubject(
  path: string,
  answers: Answers,
  without: readonly string[],
  sizeOf: SizeOf,
): ReadonlyMap<string, string> {
  const byPath = known.get(answers) ?? new Map<string, ReadonlyMap<string, string>>();
  known.set(answers, byPath);
  const before = byPath.get(path);
  if (before) return before;
  const sizeOfKey = (key: string): number => sizeOf(split(key).query);
  const keys = new Map<string, string>();
  for (const key of answers.keys) {
    if (!key.startsWith(`GET ${path}?`)) continue;
    const of = subject(key.slice('GET '.length), without);
    const other = keys.get(of);
    if (other === undefined || sizeOfKey(key) > sizeOfKey(other)) keys.set(of, key);
  }
  byPath.set(path, keys);
  return keys;
}

// The held answer with the same subject that has most; null: none.
function held(
  target: string,
  answers: Answers,
  without: readonly string[],
  sizeOf: SizeOf,
): Promise<Response> | null {
  const keys = keysBySubject(split(target).path, answers, without, sizeOf);
  const best = keys.get(subject(target, without));
  return best === undefined ? null : answers.get(best);
}

const number = (query: URLSearchParams, name: string): number => Number(query.get(name) ?? 0);

const PART = ['width', 'height', 'x_from', 'x_to', 'y_from', 'y_to'];

async function picture({ target }: Ask, answers: Answers): Promise<Response | null> {
  const { path, query } = split(target);
  if (!path.endsWith('/heatmap') || query.get('format') !== 'columns') return null;
  const pixels = (of: URLSearchParams): number => number(of, 'width') * number(of, 'height');
  // The figures of rows are held for the whole axes only.
  if (query.has('row_figures'))
    return query.has('x_from') || query.has('y_from') ? null : held(target, answers, PART, pixels);
  const own = await held(target, answers, PART, pixels);
  // The sum over all steps is that of the picture by step.
  const isAll = own === null && query.get('x') === 'all';
  if (isAll) query.set('x', 'step');
  const found = isAll ? await held(`${path}?${query.toString()}`, answers, PART, pixels) : own;
  if (!found?.ok) return found;
  const decoded = decodePicture(await found.arrayBuffer());
  if (!decoded.ok) return null;
  const range = (axis: 'x' | 'y') =>
    query.has(`${axis}_from`)
      ? { from: number(query, `${axis}_from`), to: number(query, `${axis}_to`) }
      : null;
  const part = partOfPicture(decoded.value, {
    x: range('x'),
    y: range('y'),
    width: isAll ? 1 : number(query, 'width'),
    height: number(query, 'height'),
  });
  return new Response(pictureFrame(isAll ? { ...part, x: ALL } : part));
}

const ALL: Picture['x'] = { axis: 'all', unit: '', size: 1, from: 0, to: 1, pixels: 1, rows: ['all'], sections: [] }; // prettier-ignore

type Sums = Readonly<Record<string, number>>;
interface Totals {
  readonly rows: readonly { readonly name: string; readonly all: Sums }[];
}

const VALUE_OF: Readonly<Record<string, (sums: Sums) => number>> = {
  bytes: ({ bytes_read = 0, bytes_written = 0 }) => bytes_read + bytes_written,
  accesses: ({ reads = 0, writes = 0 }) => reads + writes,
};

// In the held order, which is by time, the longest first; of other values, the held order of equals.
async function totals({ target }: Ask, answers: Answers): Promise<Response | null> {
  const { path, query } = split(target);
  const sort = query.get('sort') ?? '-time';
  if (!path.endsWith('/breakdown')) return null;
  const found = await held(target, answers, ['from', 'limit', 'sort', 'step_times'], (of) =>
    number(of, 'limit'),
  );
  if (!found?.ok) return found;
  const all = (await found.json()) as Totals & { readonly total: number };
  const isDescending = sort.startsWith('-');
  const key = sort.replace(/^-/, '');
  const valueOf = VALUE_OF[key] ?? ((sums: Sums) => sums[key] ?? 0);
  const sign = isDescending ? -1 : 1;
  const rows =
    key !== 'time'
      ? all.rows.toSorted((a, b) => sign * (valueOf(a.all) - valueOf(b.all)))
      : isDescending
        ? all.rows
        : all.rows.toReversed();
  const from = number(query, 'from');
  const limit = query.has('limit') ? number(query, 'limit') : rows.length;
  // A page beyond what is held.
  if (from + limit > rows.length && all.total > rows.length) return null;
  return Response.json({ ...all, rows: rows.slice(from, from + limit) });
}
