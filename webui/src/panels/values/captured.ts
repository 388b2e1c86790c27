// The captured values of a session, as rows of a table. All figures are those of the server.
import { exactBytes, formatBytes, formatCount, formatShape, plural } from '../../format';
import type { Column, Sort } from '../../grid/column';
import { MAX_PAGE_ROWS } from '../../net/api';
import * as wire from '../../net/types';
import type { CapturedOutput, CapturedOutputs } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { floatText, shortText } from '../weights/value_text';

// Whether its request captured something.
export function hasCapture(session: OpenSession): boolean {
  const info = session.info.value;
  return (
    info.is === 'ready' &&
    Object.keys(info.value.facts ?? {}).some((name) => name.startsWith('request.capture.'))
  );
}

// `step`: only of this one; null: of all.
export const askCaptured = (session: OpenSession, step: number | null) =>
  session.context.api.analysis(session.id, 'values', wire.capturedOutputs, {
    limit: MAX_PAGE_ROWS,
    ...(step === null ? {} : { step }),
  });

// One output of an op.
export interface OutputPlace {
  readonly step: number;
  readonly op: number;
  readonly output: string;
}

export const outputPath = ({ step, op }: OutputPlace): string => `steps/${step}/ops/${op}/values`;

// Its statistics and histogram; and its value number `at`, if it is given.
export const askOutput = (session: OpenSession, of: OutputPlace, at?: number) =>
  session.context.api.analysis(session.id, outputPath(of), wire.capturedOutputValues, {
    output: of.output,
    ...(at === undefined ? { limit: 0 } : { from: at, limit: 1 }),
  });

// "step 3, token 12", "step 0, tokens 0 – 8"
export const stepText = ({ step, token, tokens }: CapturedOutput): string =>
  tokens > 1 ? `step ${step}, tokens ${token} – ${token + tokens - 1}` : `step ${step}, token ${token}`; // prettier-ignore

// The logit lens has texts, no numbers.
export const isArray = ({ part }: Pick<CapturedOutput, 'part'>): boolean => part !== 'logit lens';

type Figure = 'min' | 'max' | 'mean' | 'std' | 'norm';
export const FIGURES: readonly Figure[] = ['min', 'max', 'mean', 'std', 'norm'];
type Count = 'step' | 'op' | 'token' | 'tokens' | 'nan' | 'inf';

const count = (key: Count, title: string, width: number, hint?: string): Column<CapturedOutput> => ({
  key,
  title,
  width,
  ...(hint === undefined ? {} : { hint }),
  align: 'right',
  text: (row) => (row[key] === 0 && (key === 'nan' || key === 'inf') ? '' : String(row[key])),
}); // prettier-ignore

export const capturedColumns: readonly Column<CapturedOutput>[] = [
  count('step', 'step', 56),
  count('token', 'token', 60, 'The first token that the step evaluates'),
  count('tokens', 'tokens', 60, 'How many tokens the step evaluates'),
  count('op', 'op', 56),
  { key: 'operation', title: 'operation', width: 110, mono: true, text: ({ operation }) => operation },
  { key: 'output', title: 'values', width: 150, grow: 1, mono: true, text: ({ output }) => output },
  { key: 'part', title: 'part', hint: 'What of the op', width: 90, text: ({ part }) => part },
  { key: 'layer', title: 'layer', width: 60, align: 'right', text: ({ layer }) => (layer === null ? '' : String(layer)) },
  { key: 'type', title: 'type', hint: 'Of the tensor in memory. The values are numbers of 32 bits', width: 60, text: ({ type }) => type },
  { key: 'shape', title: 'shape', width: 100, unsortable: true, text: ({ shape }) => formatShape(shape) },
  { key: 'bytes', title: 'size', width: 84, align: 'right', text: ({ bytes }) => formatBytes(bytes), exact: ({ bytes }) => exactBytes(bytes) },
  ...FIGURES.map((key): Column<CapturedOutput> => ({
    key,
    title: key,
    width: 84,
    align: 'right',
    text: (row) => (row[key] === null ? '' : shortText(row[key])),
    exact: (row) => (row[key] === null ? '' : floatText(row[key])),
  })),
  count('nan', 'NaN', 60),
  count('inf', 'Inf', 60),
]; // prettier-ignore

export const GREATEST_FIRST: readonly string[] = ['bytes', 'max', 'std', 'norm', 'nan', 'inf'];

// Without a column of the order: as computed. Equal values keep that order, missing ones are last.
export function sortedCaptured(
  rows: readonly CapturedOutput[],
  { key, descending }: Sort,
): readonly CapturedOutput[] {
  if (!capturedColumns.some((column) => column.key === key && !column.unsortable)) return rows;
  const of = (row: CapturedOutput): string | number | null => row[key as Exclude<keyof CapturedOutput, 'shape'>]; // prettier-ignore
  return rows.toSorted((a, b) => {
    const [x, y] = [of(a), of(b)];
    if (x === y) return 0;
    if (x === null || y === null) return x === null ? 1 : -1;
    const order = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true }); // prettier-ignore
    return descending ? -order : order;
  });
}

// What was captured and what was not, in a sentence or two.
export function capturedText({ total, bytes, rows, not_captured: left }: CapturedOutputs): string {
  const shown = rows.length < total ? ` The first ${formatCount(rows.length)} are listed.` : '';
  const lost =
    left === 0
      ? ''
      : ` ${plural(left, 'output')} ${left === 1 ? 'was' : 'were'} left out: no room in the budget (--capture-bytes, capture_bytes of a request), or not readable.`;
  return `${plural(total, 'output')}, ${formatBytes(bytes)}.${shown}${lost}`;
}
