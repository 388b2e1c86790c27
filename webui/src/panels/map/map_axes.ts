// The axes of the map from the server's description, the tensors and the steps. Pure functions.
import { componentName, formatCount, layerName, sourceName, tokenText } from '../../format';
import type { PictureAxis, Tensor } from '../../net/types';
import { axisOf, type Axis, type Section } from '../../plane/axis';
import { clip, spanOf, type Range } from '../../plane/range';
import type { Together } from '../../plane/scene';
import type { ColumnUnit } from '../../plane/sources/column_values';
import type { TraceData } from '../../state/session/trace_data';
import type { XAxis } from './map_options';
import { axisName } from './units';

const NUMBERED = ['token', 'step'];
const ROW_NAMES: Readonly<Partial<Record<string, (name: string) => string>>> = {
  layer: layerName,
  source: sourceName,
  component: componentName,
};

export function axisFrom(axis: PictureAxis, more: Partial<Axis> = {}): Axis {
  const name = axisName(axis.axis);
  if (axis.axis === 'all') return axisOf('one', 'all', 1);
  if (axis.axis === 'time') {
    return axisOf('time', 'time', axis.size, {
      whole: { from: Math.min(axis.from, axis.size - 1), to: axis.size },
      ...more,
    });
  }
  if (axis.unit === 'byte') {
    return axisOf('bytes', name, axis.size, { outer: sectionsOf(axis), ...more });
  }
  if (NUMBERED.includes(axis.axis)) return axisOf('count', name, axis.size, more);
  const text = ROW_NAMES[axis.axis];
  const names = text ? axis.rows.map(text) : axis.rows;
  const isPart = axis.axis === 'expert' || axis.axis === 'head';
  return axisOf('rows', name, axis.size, {
    names,
    groups: groupsOfNames(names),
    ...(isPart ? { besideGroup: partOfLayer } : {}),
    ...more,
  });
}

// The time, byte and other axes that are not rows keep their sections: files or buffers.
const sectionsOf = ({ sections }: PictureAxis): readonly Section[] =>
  sections.map(({ name, from, to }) => ({ name, from, to }));

export const layerAxis = (rows: number): Axis =>
  axisOf('rows', 'layer', rows, {
    names: Array.from({ length: rows }, (_, i) => (i === rows - 1 ? 'emb+out' : String(i))),
  });

// An axis of steps or tokens with their texts. A step with several tokens is the prompt, or a part.
export function columnAxis(data: TraceData, unit: ColumnUnit, units: number): Axis {
  const textOf = (index: number): string => tokenText(data.tokens[index]);
  const stepText = (index: number): string => {
    const step = data.steps[index];
    if (!step) return '';
    return step.token_count > 1 ? step.phase : textOf(step.token_id);
  };
  return axisOf('count', unit, units, { textOf: unit === 'step' ? stepText : textOf });
}

// The first unit of the axis that was generated; null: none, or an axis without phases.
export function generatedFrom(data: TraceData, x: XAxis): number | null {
  const step = data.stepTotals.first('generate');
  if (step === null || (x !== 'token' && x !== 'step')) return null;
  return x === 'step' ? step : (data.steps[step]?.token_id ?? null);
}

// The steps of the prompt with several tokens, on an axis of steps or tokens: they begin the session.
export function promptSteps({ steps }: TraceData, unit: ColumnUnit): readonly Together[] {
  const found: Together[] = [];
  for (const step of steps) {
    if (step?.phase === 'generate') break;
    if (!step || step.token_count < 2) continue;
    const { token_count: tokens } = step;
    const text = `${formatCount(tokens)} tokens`;
    if (unit === 'step') found.push({ name: text, from: step.step, to: step.step + 1, tokens });
    else found.push({ name: `${text} in one step`, from: step.token_id, to: step.token_id + tokens, tokens }); // prettier-ignore
  }
  return found;
}

// The part of the axis that belongs to a phase; null: everything.
export function phaseRange(data: TraceData, x: XAxis, phase: string): Range | null {
  const at = generatedFrom(data, x);
  if (at === null || at === 0) return null;
  if (phase === 'prompt') return { from: 0, to: at };
  return phase === 'generate' ? { from: at, to: Infinity } : null;
}

// The axis restricted to a range; unchanged if nothing would be left.
export function within(axis: Axis, range: Range | null): Axis {
  const whole = range && clip(axis.whole, range);
  if (!whole || spanOf(whole) === 0) return axis;
  const { from } = axis.whole;
  return { ...axis, whole, names: axis.names.slice(whole.from - from, whole.to - from) };
}

// "blk.3 expert 7" beside "layer 3" is "expert 7".
const partOfLayer = (name: string): string => name.replace(/^blk\.\d+ /, '');

const LAYER_IN_NAME = /(?:blk\.|-|_l)(\d+)(?:\.|$| )/;

// The layer in a tensor's name; null: none.
export function layerOfName(name: string): number | null {
  const found = LAYER_IN_NAME.exec(name);
  return found ? Number(found[1]) : null;
}

// Adjacent rows of the same layer. Rows whose names have no layer belong to the layer around them.
// Empty: fewer than two layers.
export function groupsOfNames(names: readonly string[]): readonly Section[] {
  const groups: { name: string; from: number; to: number }[] = [];
  names.forEach((name, i) => {
    const layer = layerOfName(name);
    if (layer === null) return;
    const last = groups.at(-1);
    const text = `layer ${layer}`;
    if (last?.name === text) last.to = i + 1;
    else groups.push({ name: text, from: i, to: i + 1 });
  });
  return groups.length < 2 ? [] : groups;
}

// Outputs that llama.cpp does not name, with the type of their op: "node_165 FLASH_ATTN_EXT".
export function withOpTypes(axis: Axis, typeOf: (output: string) => string | null): Axis {
  const names = axis.names.map((name) => {
    const type = /^node_\d+$/.test(name) ? typeOf(name) : null;
    return type === null ? name : `${name} ${type}`;
  });
  return { ...axis, names };
}

// The output of a row with its type.
export const outputOf = (name: string): string => name.replace(/^(node_\d+) .*$/, '$1');

export interface Place extends Section {
  readonly layer: number | null;
  readonly experts: number; // 0: not a tensor of experts
  readonly rowBytes: number; // 0: unknown
}

// The tensors of the model files, by offset. `files` are the sections of the file axis.
export function weightPlaces(
  tensors: readonly Tensor[],
  files: readonly Section[],
  experts: number,
): readonly Place[] {
  const places = new Map<string, Place>();
  for (const tensor of tensors) {
    const { tensor_name: name, model_file: file, role } = tensor;
    if (tensor.tensor_kind !== 'weight' || file === null || places.has(name)) continue;
    const from = (files[file]?.from ?? 0) + (tensor.file_offset ?? 0);
    const isSliced = experts > 0 && tensor.ne2 === experts && /exps|expert/.test(name + role);
    places.set(name, {
      name,
      from,
      to: from + (tensor.file_bytes ?? 0),
      layer: tensor.layer_id,
      experts: isSliced ? experts : 0,
      rowBytes: tensor.ne1 > 1 ? tensor.nb1 : 0,
    });
  }
  return [...places.values()].sort((a, b) => a.from - b.from);
}

// A tensor in a buffer: its name and addresses.
export interface BufferTensor {
  readonly name: string;
  readonly source: string; // of its memory
  readonly from: number; // address
  readonly to: number;
}

// The tensors of the buffers, by position on the axis. Its sections are ranges of addresses.
export interface BufferPlace extends Place {
  readonly source: string; // of its memory
}

export function bufferPlaces(
  tensors: readonly BufferTensor[],
  sections: PictureAxis['sections'],
): readonly BufferPlace[] {
  const places = tensors.flatMap(({ name, source, from, to }): readonly BufferPlace[] => {
    const section = sections.find(
      (one) => from >= one.origin && from < one.origin + (one.to - one.from),
    );
    if (!section) return [];
    const start = section.from + from - section.origin;
    const layer = layerOfName(name);
    return [
      {
        name,
        from: start,
        to: Math.min(section.to, start + to - from),
        layer,
        experts: 0,
        rowBytes: 0,
        source,
      },
    ];
  });
  // Memory that several tensors share has the name of the first one.
  return places
    .sort((a, b) => a.from - b.from)
    .filter((place, i, all) => i === 0 || place.from >= (all[i - 1]?.to ?? 0));
}

// Views have the name of their tensor.
export const baseName = (name: string): string => name.replace(/ \(.*\)$/, '');

// What the buffers are for, from the tensors in them.
export function buffersOf(
  sections: readonly Section[],
  places: readonly BufferPlace[],
): readonly Section[] {
  return sections.map((section) => {
    const found = new Set(places.flatMap((one) => (liesIn(one, section) ? [one.source] : [])));
    const source = ['repacked', 'kv', 'compute', 'input'].find((one) => found.has(one));
    return { ...section, name: source === undefined ? section.name : sourceName(source) };
  });
}

const liesIn = (place: Range, { from, to }: Range): boolean =>
  place.from >= from && place.from < to;

// Many tensors use the memory of these one after the other.
export const isShared = ({ source }: BufferPlace): boolean =>
  source === 'compute' || source === 'input';

// The layers in the buffers that belong to them.
export function layersInBuffers(
  sections: readonly Section[],
  places: readonly BufferPlace[],
): readonly Section[] {
  return sections.flatMap((section) => {
    const inside = places.filter((one) => !isShared(one) && liesIn(one, section));
    return inside.length > 0 ? layersOf(inside) : [{ ...section, name: '' }];
  });
}

// Adjacent tensors of one layer; tensors without a layer have a group without a name.
export function layersOf(places: readonly Place[]): readonly Section[] {
  const groups: { name: string; from: number; to: number }[] = [];
  for (const { layer, from, to } of places) {
    const text = layer === null ? '' : `layer ${layer}`;
    const last = groups.at(-1);
    if (last?.name === text) last.to = Math.max(last.to, to);
    else groups.push({ name: text, from, to });
  }
  return groups;
}

// "blk.3.attn_q.weight" inside its layer is "attn_q".
export const shortName = (name: string): string =>
  name.replace(/^blk\.\d+\./, '').replace(/\.weight$/, '');

// The parts of the axis: tensors, and inside large ones of experts the experts.
export function partsOf(places: readonly Place[]): readonly Section[] {
  return places.flatMap(({ name: tensor, from, to, experts, rowBytes }): readonly Section[] => {
    const name = shortName(tensor);
    const units = rowBytes > 0 ? { units: { name: 'row', size: rowBytes } } : {};
    if (experts === 0) return [{ name, from, to, ...units }];
    const size = (to - from) / experts;
    return Array.from({ length: experts }, (_, i) => ({
      name: `${name} expert ${i}`,
      of: name,
      from: from + i * size,
      to: from + (i + 1) * size,
      ...units,
    }));
  });
}
