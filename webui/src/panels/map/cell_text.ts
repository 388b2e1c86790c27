// The description of a cell of the map, for the tooltip and for screen readers.
import {
  exactBytes,
  exactNs,
  formatCount,
  formatNs,
  plural,
  timingText,
  tokenText,
} from '../../format';
import { positionText, rangeText, sectionAt, unitText } from '../../plane/axis';
import type { Hit } from '../../plane/layout';
import type { Scene } from '../../plane/scene';
import { spanOf, type Range } from '../../plane/range';
import type { TipText } from '../../ui/tip';
import type { StepSummary } from '../../net/types';
import type { TraceData } from '../../state/session/trace_data';
import { tracksOf, type MapOptions } from './map_options';
import { axisName, sumText, unitOf, valueName } from './units';

export interface Cell {
  readonly x: Range;
  readonly y: Range | null;
  readonly value: number; // NaN: none
}

export interface CellContext {
  readonly data: TraceData;
  readonly options: MapOptions;
  readonly scene: Scene;
  readonly total: number; // of the session; 0: unknown
  readonly step: number | null; // at the position
  readonly tensor: string | null; // at the position of a byte axis
  readonly isOutside: boolean; // of the brushed range, to which the picture is limited
  readonly residency: readonly (readonly [name: string, value: string])[]; // of the tensor
  readonly scores: (row: string) => readonly (readonly [name: string, value: string])[]; // of a head
}

export function describeCell({
  hit,
  cell,
  context,
}: {
  hit: Hit;
  cell: Cell;
  context: CellContext;
}): TipText {
  const { data, options, scene, total, step, tensor, residency, isOutside } = context;
  const lines: (readonly [string, string])[] = [];
  const track = tracksOf(options.y)[hit.track] ?? 'layer';
  const axis = scene.tracks[hit.track]?.y;
  if (axis && cell.y && hit.y !== null) {
    const isOneRow = axis.kind !== 'rows' || spanOf(cell.y) <= 1;
    const name = tensor ?? (isOneRow ? positionText(axis, hit.y) : rangeText(axis, cell.y));
    if (cell.value === 0 && options.x === 'time') {
      const place = axis.kind === 'bytes' ? name : `${axisName(track)} ${name}`;
      return { ...titleOf(data, scene, hit, cell), lines: [[place, nothingText(track, options)]] };
    }
    if (axis.kind !== 'bytes') lines.push([axisName(track), name]);
    else if (tensor) lines.push(['tensor', name]);
    const part = axis.kind === 'bytes' ? sectionAt(axis.parts, hit.y) : null;
    if (part?.name.includes('expert')) lines.push(['expert', /\d+$/.exec(part.name)?.[0] ?? '']);
    const unit = part ? unitText(part, hit.y) : null;
    if (unit !== null) lines.push(['row', unit.replace(/^\w+ /, '')]);
    if (track === 'head' && isOneRow) lines.push(...context.scores(name));
    if (axis.kind === 'bytes') lines.push(['offset', `${formatCount(Math.floor(hit.y))} bytes`]);
  }
  const summary = step === null ? undefined : data.steps[step];
  if (isOutside && cell.value === 0) lines.push(['value', 'not in the selected range']);
  else if (cell.value >= 0 && cell.y) {
    lines.push(...valueLines(cell, cell.y, options, track, total));
    if (options.x === 'token' && summary) lines.push(...sharedLine(cell, cell.y, options, summary));
  }
  lines.push(...residency);
  if (options.x === 'token') lines.push(...tokenLines(data, Math.floor(hit.x)));
  if (summary) {
    lines.push([
      options.x === 'token' ? 'evaluated by' : 'step',
      `${options.x === 'token' ? 'step ' : ''}${summary.step}, ${summary.phase}, ${plural(summary.ops_timed, 'op')}`,
    ]);
    const time = summary.end_ns - summary.begin_ns;
    lines.push([
      'whole step',
      summary.dropped ? 'times lost' : `${formatNs(time)} (${exactNs(time)})`,
    ]);
    lines.push([
      'op times',
      summary.aborted ? `${timingText(summary.timing)}, aborted` : timingText(summary.timing),
    ]);
    if (summary.verdict !== null && summary.verdict !== 'clean')
      lines.push(['machine', `${summary.verdict}: its times are not those of the model alone`]);
  }
  return { ...titleOf(data, scene, hit, cell), lines };
}

// Of an empty place, where there is nothing else to say.
function nothingText(track: string, { value }: MapOptions): string {
  if (value === 'faults') return 'no disk waits here';
  if (value === 'bytes_written') return 'nothing written here';
  if (track === 'buffer' && value !== 'bytes_read') return 'nothing read or written here';
  return track === 'file' || value === 'bytes_read' ? 'nothing read here' : 'nothing here';
}

function titleOf(
  data: TraceData,
  { x }: Scene,
  hit: Hit,
  cell: Cell,
): { readonly title: string; readonly head: string } {
  if (x.name === 'token' && x.kind === 'count') {
    const index = Math.floor(hit.x);
    const token = data.tokens[index];
    if (spanOf(cell.x) > 1) return { title: rangeText(x, cell.x), head: 'one pixel' };
    return {
      title: tokenText(token),
      head: `token ${formatCount(index)}${token ? `, id ${token.id}` : ''}`,
    };
  }
  const step = x.name === 'step' && spanOf(cell.x) <= 1 ? data.steps[Math.floor(hit.x)] : undefined;
  if (step) {
    const { step: index, phase, token_count: tokens, token_id: id } = step;
    const head = `step ${formatCount(index)}${tokens === 1 ? `, token ${formatCount(id)}` : ''}`;
    if (tokens > 1) return { title: `${plural(tokens, 'token')} of the ${phase}`, head };
    return { title: tokenText(data.tokens[id]), head }; // prettier-ignore
  }
  if (x.kind === 'one') return { title: 'whole session', head: '' };
  return {
    title: spanOf(cell.x) > 1 ? rangeText(x, cell.x) : positionText(x, hit.x),
    head: x.name,
  };
}

function valueLines(
  cell: Cell,
  y: Range,
  options: MapOptions,
  track: string,
  total: number,
): readonly [string, string][] {
  const unit = unitOf(options, track);
  const sum = cell.value * spanOf(cell.x) * spanOf(y);
  const isSingle = spanOf(cell.x) <= 1 && spanOf(y) <= 1;
  const exact =
    options.value === 'time'
      ? exactNs(Math.round(sum))
      : options.value.startsWith('bytes')
        ? exactBytes(Math.round(sum))
        : null;
  const text = sumText(options.value, sum);
  const lines: [string, string][] = [];
  // The value of a single cell is its sum.
  if (!isSingle || unit.text(cell.value) !== text) lines.push([unit.what, unit.text(cell.value)]);
  lines.push([
    isSingle ? valueName(options.value) : `${valueName(options.value)} here`,
    exact ? `${text} (${exact})` : text,
  ]);
  if (total > 0 && sum > 0)
    lines.push(['share', `${Number(((100 * sum) / total).toPrecision(2))} % of all`]);
  return lines;
}

// The value of a step that evaluated several tokens together, each of which shows an equal share.
function sharedLine(
  cell: Cell,
  y: Range,
  { value }: MapOptions,
  { step, phase, token_count: tokens }: StepSummary,
): readonly [string, string][] {
  if (tokens < 2 || spanOf(cell.x) > 1) return [];
  const sum = cell.value * spanOf(y) * tokens;
  const text = value === 'accesses' ? plural(sum, 'access', 'accesses') : sumText(value, sum);
  const kind = phase === 'prompt' ? 'prompt token' : 'token';
  return [[`step ${step}`, `${text}, shared equally by its ${plural(tokens, kind)}`]];
}

// The step that made the token, or why none evaluated it.
function tokenLines(data: TraceData, token: number): readonly [string, string][] {
  const read = data.stepOfToken(token);
  const made = data.tokens[token]?.generated ? data.stepOfToken(token - 1) : null;
  const lines: [string, string][] = [];
  if (made !== null) lines.push(['made by', `step ${made}`]);
  if (read === null) {
    const { flight } = data;
    const why = data.tokens[token]?.reused
      ? 'reused from the KV cache, not computed'
      : flight && token >= data.tokens.length - 1
        ? `running, ${plural(flight.ops, 'op')} so far`
        : 'not computed';
    lines.push(['step', why]);
  }
  return lines;
}
