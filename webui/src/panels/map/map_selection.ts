// What a click on the map selects or compares, and where the selection is on its axes.
import { computed, type ReadonlySignal } from '@preact/signals';
import type { StepSummary } from '../../net/types';
import { nameAt, rowOfName, type Axis } from '../../plane/axis';
import type { Hit } from '../../plane/layout';
import type { Marked } from '../../plane/paint_overlay';
import type { Range } from '../../plane/range';
import type { Scene } from '../../plane/scene';
import type { OpenSession } from '../../state/session/open_session';
import { accessesOf, executedOp, graphOf, opsOf } from '../../state/session/per_session';
import { expertName, headName, partNamed, type Selection } from '../../state/view/selection';
import type { Store } from '../../state/store';
import type { TraceData } from '../../state/session/trace_data';
import { comparedOf } from '../../state/view/view';
import { layerOfName, outputOf } from './map_axes';
import { tracksOf, type MapOptions } from './map_options';
import type { MapScene } from './map_scene';

// The names of the rows of the axis `head`.

const NOTHING: Marked = { x: null, ys: [], compared: { x: null, ys: [] } };

export class MapSelection {
  readonly marked: ReadonlySignal<Marked>;
  private readonly store: Store;
  private readonly session: OpenSession;
  private readonly options: ReadonlySignal<MapOptions>;
  private readonly map: MapScene;

  constructor(
    store: Store,
    session: OpenSession,
    options: ReadonlySignal<MapOptions>,
    map: MapScene,
  ) {
    this.store = store;
    this.session = session;
    this.options = options;
    this.map = map;
    this.marked = computed(() => this.markedIn(map.scene.value));
  }

  // ---- A click -----------------------------------------------------------------------

  select(hit: Hit): void {
    const axis = this.map.scene.peek()?.tracks[hit.track]?.y;
    if (!axis) return;
    const { x, y } = this.options.peek();
    const track = tracksOf(y)[hit.track] ?? '';
    const step = Number.isNaN(hit.x) ? null : stepAt(this.session.data, x, hit.x);
    const toStep = step === null ? {} : { step };
    const layer = hit.y === null ? null : layerOfRow(track, axis, Math.floor(hit.y));
    const { navigation } = this.store;
    if (hit.y !== null && track !== 'layer') {
      const selection = this.selectionAt(track, axis, hit.y);
      if (selection) {
        navigation.change({ selection, ...toStep, layer: layer ?? navigation.view.peek().layer });
        return;
      }
    }
    const token = Number.isNaN(hit.x) ? null : tokenAt(this.session.data, x, hit.x);
    if (token !== null) {
      this.store.selectToken(this.session, token, layer);
    } else if (layer !== null) {
      navigation.change({ layer, selection: { kind: 'layer', layer }, ...toStep });
    } else if (step !== null) {
      navigation.toStep(step);
    }
  }

  private selectionAt(track: string, axis: Axis, y: number): Selection | null {
    const name = nameAt(axis, y);
    const row = name && outputOf(name);
    const tensor = axis.kind === 'bytes' ? this.map.tensorAt(axis, y) : track === 'tensor' ? row : null; // prettier-ignore
    if (tensor !== null) {
      const graph = graphOf(this.session).state.peek().value;
      return graph?.tensorOf.has(tensor) === true ? { kind: 'tensor', name: tensor } : null;
    }
    if (track === 'expert' || track === 'head') return partNamed(row ?? '');
    if (track !== 'op') return null;
    const ops = opsOf(this.session).state.peek().value?.rows ?? [];
    const op = ops.find((one) => one.tensor_name === row);
    return op ? { kind: 'op', op: op.op } : null;
  }

  // Compares the selected token or layer with the one at a place. Returns false if there is none.
  compare(hit: Hit): boolean {
    const { x, y } = this.options.peek();
    const { navigation } = this.store;
    const { selection, layer } = navigation.view.peek();
    const row = hit.y === null ? null : Math.floor(hit.y);
    const other = Number.isNaN(hit.x) ? null : tokenAt(this.session.data, x, hit.x);
    if (other !== null) {
      const step = this.session.step.peek();
      const token =
        selection?.kind === 'token'
          ? selection.token
          : step === null
            ? null
            : (this.session.data.steps[step]?.token_id ?? null);
      if (token === null) return false;
      navigation.change({
        selection: { kind: 'token', token },
        compared: { kind: 'token', token: other },
      });
      return true;
    }
    const otherLayer =
      x === 'layer' && !Number.isNaN(hit.x) ? Math.floor(hit.x) : y === 'layer' ? row : null;
    if (otherLayer === null || otherLayer >= this.store.layers.peek()) return false;
    navigation.change({
      selection: selection?.kind === 'layer' ? selection : { kind: 'layer', layer },
      compared: { kind: 'layer', layer: otherLayer },
    });
    return true;
  }

  // ---- Where the selection is --------------------------------------------------------

  private markedIn(scene: Scene | null): Marked {
    if (!scene) return NOTHING;
    const { selection, layer } = this.store.navigation.view.value;
    const options = this.options.value;
    const name = this.selectedName(selection);
    const ys = tracksOf(options.y).map((track, i): Range | null => {
      const axis = scene.tracks[i]?.y;
      if (!axis) return null;
      if (track === 'layer') return { from: layer, to: layer + 1 };
      if (name === null) return null;
      if (axis.kind === 'bytes')
        return this.map.weights.value.find((place) => place.name === name) ?? null;
      return rowOfName({ ...axis, names: axis.names.map(outputOf) }, name);
    });
    return { x: this.markedX(options, selection, layer), ys, compared: this.comparedIn(options) };
  }

  private markedX({ x }: MapOptions, selection: Selection | null, layer: number): Range | null {
    if (x === 'layer') return { from: layer, to: layer + 1 };
    const step = this.session.step.value;
    const summary = step === null ? undefined : this.session.data.steps[step];
    if (!summary || step === null) return null;
    if (x === 'token')
      return { from: summary.token_id, to: summary.token_id + summary.token_count };
    if (x === 'step') return { from: step, to: step + 1 };
    return x === 'time' ? this.timeOf(selection, summary) : null;
  }

  // What the selection is compared with.
  private comparedIn({ x, y }: MapOptions): Marked['compared'] {
    const compared = comparedOf(this.store.navigation.view.value);
    const at = compared?.kind === 'token' ? compared.token : (compared?.layer ?? 0);
    const range = compared && { from: at, to: at + 1 };
    const step = compared?.kind === 'token' ? this.session.data.stepOfToken(at) : null;
    const ofStep = x === 'step' && step !== null ? { from: step, to: step + 1 } : null;
    return {
      x: compared?.kind === x ? range : ofStep,
      ys: tracksOf(y).map((track) => (compared?.kind === track ? range : null)),
    };
  }

  // The time of the selected op, else of the step.
  private timeOf(selection: Selection | null, { step, begin_ns, end_ns }: StepSummary): Range {
    const ops = opsOf(this.session).state.value.value;
    const index = executedOp(this.session, selection);
    const op =
      ops?.step === step && index !== null ? ops.rows.find((one) => one.op === index) : undefined;
    return op && op.duration_ns !== null
      ? { from: op.timestamp_ns, to: op.timestamp_ns + op.duration_ns }
      : { from: begin_ns, to: end_ns };
  }

  // The name of the row of the selected tensor, of the one that the selected access touches, of the
  // selected expert or head, or of the output of the selected op.
  private selectedName(selection: Selection | null): string | null {
    if (selection?.kind === 'tensor') return selection.name.replace(/~\d+$/, '');
    if (selection?.kind === 'expert') return expertName(selection);
    if (selection?.kind === 'head') return headName(selection);
    if (selection?.kind === 'access') {
      const accesses = accessesOf(this.session).state.value.value ?? [];
      const { op, access, part } = selection;
      const touched = accesses.find((one) => one.op === op && one.access === access && one.part === part); // prettier-ignore
      if (touched) return touched.tensor_name;
    }
    const op = executedOp(this.session, selection);
    if (op === null) return null;
    const ops = opsOf(this.session).state.value.value?.rows ?? [];
    return ops.find((one) => one.op === op)?.tensor_name ?? null;
  }
}

// The layer of a row; null: the last row of the layers, or a row of no layer.
function layerOfRow(track: string, axis: Axis, row: number): number | null {
  if (track !== 'layer') return layerOfName(nameAt(axis, row) ?? '');
  return row < axis.whole.to - 1 ? row : null;
}

// The token at a position of the x axis; null: none, or several.
export function tokenAt(data: TraceData, x: MapOptions['x'], at: number): number | null {
  if (x === 'token') return Math.floor(at);
  const step = x === 'step' ? data.steps[Math.floor(at)] : undefined;
  return step?.token_count === 1 ? step.token_id : null;
}

// The step at a position of the x axis; null: none.
export function stepAt(data: TraceData, x: MapOptions['x'], at: number): number | null {
  if (x === 'token') return data.stepOfToken(Math.floor(at));
  if (x === 'step') return data.steps[Math.floor(at)] ? Math.floor(at) : null;
  if (x !== 'time') return null;
  let low = 0;
  let high = data.steps.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((data.steps[middle]?.begin_ns ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  const step = data.steps[low - 1];
  return step && at < step.end_ns ? step.step : null;
}
