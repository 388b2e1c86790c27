// The axes of a plane: what the numbers on them are, and their labels. Pure functions.
import { formatBytes, formatCount, formatNs } from '../format';
import { clip, overlaps, spanOf, type Range } from './range';

// rows: named rows, one unit each. count: numbered units, for example tokens. time: nanoseconds.
// bytes: offsets. index: numbered units of a matrix, on both axes. one: a single unit, everything.
export type AxisKind = 'rows' | 'count' | 'time' | 'bytes' | 'index' | 'one';

export interface Section extends Range {
  readonly name: string;
  // What it is an equal part of, for example the tensor of an expert.
  readonly of?: string;
  // Equal units that it consists of, for example the rows of a matrix.
  readonly units?: { readonly name: string; readonly size: number };
}

export interface Axis {
  readonly kind: AxisKind;
  readonly name: string; // 'token', 'layer', 'file'...
  readonly whole: Range;
  readonly names: readonly string[]; // of rows, from whole.from on
  // The name of a row beside that of its group: "expert 3" beside "layer 2".
  readonly besideGroup?: (name: string) => string;
  // Adjacent groups that belong together, in order: files, buffers.
  readonly outer: readonly Section[];
  // Adjacent units that belong together, in order: layers.
  readonly groups: readonly Section[];
  // Named parts inside the groups, in order: tensors, experts.
  readonly parts: readonly Section[];
  // Text of a unit on a count axis, for example of a token.
  readonly textOf?: (unit: number) => string;
}

export const axisOf = (
  kind: AxisKind,
  name: string,
  to: number,
  part: Partial<Axis> = {},
): Axis => ({
  kind,
  name,
  whole: { from: 0, to: Math.max(1, to) },
  names: [],
  outer: [],
  groups: [],
  parts: [],
  ...part,
});

// The name of a row; null: outside, or the axis has none.
export const nameAt = ({ names, whole }: Axis, row: number): string | null =>
  names[Math.floor(row) - whole.from] ?? null;

// What is written beside a row with this name.
export const writtenName = ({ groups, besideGroup }: Axis, name: string): string =>
  besideGroup && groups.length > 1 ? besideGroup(name) : name;

// The row with a name; null: none.
export function rowOfName({ names, whole }: Axis, name: string): Range | null {
  const index = names.indexOf(name);
  return index < 0 ? null : { from: whole.from + index, to: whole.from + index + 1 };
}

// The smallest range that can be zoomed to.
export function leastSpan(axis: Axis): number {
  if (axis.kind === 'time') return 1000;
  if (axis.kind === 'bytes') return 64;
  return axis.kind === 'count' ? 4 : 1;
}

// The last section that begins at or before a position and contains it; null: none.
export function sectionAt<S extends Section>(sections: readonly S[], at: number): S | null {
  let low = 0;
  let high = sections.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sections[middle]?.from ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  const section = sections[low - 1];
  return section && at < section.to ? section : null;
}

// The sections that overlap a range.
export function sectionsIn<S extends Range>(sections: readonly S[], range: Range): readonly S[] {
  let low = 0;
  let high = sections.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sections[middle]?.to ?? 0) <= range.from) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < sections.length && overlaps(sections[end] ?? { from: Infinity, to: 0 }, range))
    end += 1;
  return sections.slice(low, end);
}

export interface Label {
  readonly from: number; // axis units; the label is centred between them
  readonly to: number;
  readonly text: string;
}

// Labels of sections, centred on their visible part: all with `room` pixels of their own, and of the
// others those that have room between them. The choice stays the same while the view moves.
export function sectionLabels(
  sections: readonly Section[],
  view: Range,
  pixels: number,
  room: number,
): readonly Label[] {
  const scale = pixels / spanOf(view);
  const named = sections.filter(({ name }) => name !== '');
  const chosen: Section[] = [];
  let end = -Infinity; // of the last label; in pixels
  named.forEach((section, i) => {
    const isWide = spanOf(section) * scale >= room;
    const middle = ((section.from + section.to) / 2) * scale;
    const next = named[i + 1];
    const isInWay =
      next !== undefined &&
      spanOf(next) * scale >= room &&
      ((next.from + next.to) / 2) * scale - middle < room;
    if (!isWide && (middle - end < room || isInWay)) return;
    chosen.push(section);
    end = middle;
  });
  return sectionsIn(chosen, view).flatMap((section) => {
    const { from, to } = clip(section, view);
    const least = Math.min(room, spanOf(section) * scale) * 0.999;
    return (to - from) * scale >= least ? [{ from, to, text: section.name }] : [];
  });
}

const MOST_LEFT_OUT = 4; // then only every fourth row has a name; less says nothing

// How many rows share a label: 1, 2, 4...
export function rowsPerLabel(pitch: number, room: number): number {
  let every = 1;
  while (every * pitch < room) every *= 2;
  return every;
}

// Whether rows in groups have names of their own.
export const namesRows = (pitch: number, room: number): boolean =>
  rowsPerLabel(pitch, room) <= MOST_LEFT_OUT;

// Labels of parts, and where a part has the room, of its units: "row 512". Equal parts of one whole
// that have no room share a label, or every second or fourth one has a label.
export function partLabels(
  parts: readonly Section[],
  view: Range,
  pixels: number,
  room: number,
): readonly Label[] {
  const scale = pixels / spanOf(view);
  return joined(sectionsIn(parts, view), scale, room).flatMap((part) => {
    const { from, to } = clip(part, view);
    const whole = { from, to, text: part.name };
    if ((to - from) * scale < Math.min(room, spanOf(part) * scale) * 0.999) return [];
    if (!part.units || (to - from) * scale < 5 * room) return [whole];
    const { name, size } = part.units;
    const step = Math.max(1, tickStep(size * scale, 2 * room));
    const labels: Label[] = [{ from, to: from + room / scale, text: part.name }];
    const first = Math.ceil((from + (1.5 * room) / scale - part.from) / size / step);
    for (let i = first; part.from + i * step * size < to - (0.5 * room) / scale; i += 1) {
      const at = part.from + i * step * size;
      labels.push({ from: at, to: at, text: `${name} ${formatCount(i * step)}` });
    }
    return labels;
  });
}

// The parts that are labelled.
export function joined(parts: readonly Section[], scale: number, room: number): readonly Section[] {
  const found: Section[] = [];
  for (let at = 0; at < parts.length;) {
    const first = parts[at];
    let end = at + 1;
    while (first?.of !== undefined && parts[end]?.of === first.of) end += 1;
    const run = parts.slice(at, end);
    at = end;
    if (!first) continue;
    const whole = { name: first.of ?? '', from: first.from, to: run.at(-1)?.to ?? first.to };
    const pitch = spanOf(first) * scale;
    if (run.length === 1 || pitch >= room)
      found.push(...run.filter((one) => spanOf(one) * scale >= room)); // prettier-ignore
    else if (namesRows(pitch, room))
      found.push(...run.filter((_, i) => i % rowsPerLabel(pitch, room) === 0));
    else if (spanOf(whole) * scale >= room)
      found.push({ ...whole, name: `${whole.name}, experts` });
  }
  return found;
}

// The unit of a part at a position: "row 512"; null: it has no units.
export function unitText({ from, units }: Section, at: number): string | null {
  return units ? `${units.name} ${formatCount(Math.floor((at - from) / units.size))}` : null;
}

// Labels of rows: all if each has `room` pixels, else every 2nd, 4th...; the last row, which is
// usually special, is always labelled.
export function rowLabels(axis: Axis, view: Range, pixels: number, room: number): readonly Label[] {
  const pitch = pixels / spanOf(view);
  const every = rowsPerLabel(pitch, room);
  const first = Math.max(axis.whole.from, Math.floor(view.from));
  const last = Math.min(axis.whole.to, Math.ceil(view.to));
  const labels: Label[] = [];
  for (let row = first; row < last; row += 1) {
    const isLast = row === axis.whole.to - 1;
    const isCovered = !isLast && (axis.whole.to - 1 - row) * pitch < room && axis.whole.to <= last;
    if ((row % every !== 0 && !isLast) || isCovered) continue;
    labels.push({
      from: row,
      to: row + 1,
      text: writtenName(axis, axis.names[row - axis.whole.from] ?? String(row)),
    });
  }
  return labels;
}

// The interval of ticks: 1, 2 or 5 times a power of ten, at least `room` pixels.
export function tickStep(pitch: number, room: number): number {
  const least = room / pitch;
  const power = 10 ** Math.floor(Math.log10(Math.max(1e-9, least)));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= least * 0.999) ?? 10 * power;
}

// The interval of ticks on a byte axis: a power of two.
function byteStep(pitch: number, room: number): number {
  return 2 ** Math.ceil(Math.log2(room / pitch));
}

const isNumbered = ({ kind }: Axis): boolean => kind === 'count' || kind === 'index';

export function ticks(axis: Axis, view: Range, pixels: number, room: number): readonly Label[] {
  const pitch = pixels / spanOf(view);
  const step =
    axis.kind === 'bytes'
      ? Math.max(1, byteStep(pitch, room))
      : Math.max(isNumbered(axis) ? 1 : 0, tickStep(pitch, room));
  const first = Math.ceil(Math.max(view.from, axis.whole.from) / step);
  const labels: Label[] = [];
  const end = Math.min(view.to, axis.whole.to);
  for (let i = first; i * step < end; i += 1) {
    const at = i * step;
    const to = isNumbered(axis) ? at + 1 : at;
    labels.push({ from: at, to, text: tickText(axis, at, step) });
  }
  return labels;
}

function tickText(axis: Axis, at: number, step: number): string {
  if (axis.kind === 'bytes') return formatBytes(at);
  if (axis.kind !== 'time') return formatCount(at);
  // All ticks have the unit and the digits of the step.
  if (step >= 1e9) return `${formatCount(at / 1e9)} s`;
  if (step >= 1e6) return `${formatCount(at / 1e6)} ms`;
  return step >= 1e3 ? `${formatCount(at / 1e3)} µs` : `${formatCount(at)} ns`;
}

// A position as text, for descriptions.
export function positionText(axis: Axis, at: number): string {
  switch (axis.kind) {
    case 'rows':
      return axis.names[Math.floor(at) - axis.whole.from] ?? String(Math.floor(at));
    case 'count':
    case 'index':
      return `${axis.name} ${formatCount(Math.floor(at))}`;
    case 'time':
      return formatNs(at);
    case 'bytes': {
      const part = sectionAt(axis.parts, at) ?? sectionAt(axis.groups, at);
      return part
        ? `${part.name} + ${formatBytes(Math.floor(at - part.from))}`
        : formatBytes(Math.floor(at));
    }
    case 'one':
      return 'all';
  }
}

// With as many digits as tell the ends apart: "242.13 – 242.19 ms".
function timeRange(from: number, to: number): string {
  const [begin, end] = [formatNs(from), formatNs(to)];
  if (begin !== end) return `${begin} – ${end}`;
  const [size, unit] = to >= 1e9 ? [1e9, 's'] : to >= 1e6 ? [1e6, 'ms'] : [1e3, 'µs'];
  const digits = [2, 3, 4, 5, 6, 7, 8].find(
    (n) => (from / size).toFixed(n) !== (to / size).toFixed(n),
  );
  return `${(from / size).toFixed(digits ?? 9)} – ${(to / size).toFixed(digits ?? 9)} ${unit}`;
}

// The names of the rows, or of the parts of a file or a memory, that a range covers.
export function namesIn(axis: Axis, { from, to }: Range): readonly string[] {
  const rows = axis.names.slice(
    Math.max(0, Math.floor(from) - axis.whole.from),
    Math.max(0, Math.ceil(to) - axis.whole.from),
  );
  // A part has a short name, which is unique in its group.
  const parts = sectionsIn(axis.parts, { from, to }).map(({ name, from: at }) =>
    `${sectionAt(axis.groups, at)?.name ?? ''} ${name}`.trim(),
  );
  return axis.kind === 'rows' ? rows : [...new Set(parts)];
}

// A range as text, for the breadcrumb.
export function rangeText(axis: Axis, { from, to }: Range): string {
  switch (axis.kind) {
    case 'rows': {
      const last = Math.max(Math.floor(from), Math.ceil(to) - 1);
      const names = [positionText(axis, from), positionText(axis, last)];
      const prefix = /^\d+$/.test(names[0] ?? '') ? `${axis.name} ` : '';
      return prefix + (names[0] === names[1] ? (names[0] ?? '') : names.join(' – '));
    }
    case 'count':
    case 'index': {
      const [first, last] = [Math.floor(from), Math.max(Math.floor(from), Math.ceil(to) - 1)];
      return first === last
        ? `${axis.name} ${formatCount(first)}`
        : `${axis.name}s ${formatCount(first)} – ${formatCount(last)}`;
    }
    case 'time':
      return timeRange(from, to);
    case 'bytes': {
      const inside = sectionAt(axis.parts, from);
      if (inside && to <= inside.to) return `${inside.name}, ${formatBytes(Math.round(to - from))}`;
      const around = [axis.outer, axis.groups]
        .map((sections) => sectionAt(sections, from))
        .filter((one) => one !== null && one.name !== '' && to <= one.to);
      if (around.length > 0) {
        const names = around.map((one) => one?.name ?? '').join(' ');
        return `${names}, ${formatBytes(Math.round(to - from))}`;
      }
      return `${axis.name} ${formatBytes(Math.floor(from))} – ${formatBytes(Math.ceil(to))}`;
    }
    case 'one':
      return 'all';
  }
}
