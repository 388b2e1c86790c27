// The scene of the map: axes with the names of what they consist of, sources and colours.
import { computed, effect, type ReadonlySignal } from '@preact/signals';
import { sourceName } from '../../format';
import type { Picture } from '../../net/frames';
import { sectionAt, type Axis } from '../../plane/axis';
import type { Range } from '../../plane/range';
import type { Scene, Track } from '../../plane/scene';
import type { ColumnUnit } from '../../plane/sources/column_values';
import type { OpenSession } from '../../state/session/open_session';
import type { TraceData } from '../../state/session/trace_data';
import { graphOf } from '../../state/session/per_session';
import { bufferTensorsOf } from './buffer_tensors';
import {
  axisFrom,
  bufferPlaces,
  buffersOf,
  columnAxis,
  isShared,
  layerAxis,
  layersInBuffers,
  layersOf,
  partsOf,
  phaseRange,
  promptSteps,
  weightPlaces,
  within,
  withOpTypes,
  type BufferPlace,
  type Place,
} from './map_axes';
import { tracksOf, type MapOptions } from './map_options';
import type { MapPictures } from './map_pictures';
import type { MapResidency } from './map_residency';
import { lanesOf } from './residency';
import { axisName, unitOf } from './units';

export class MapScene {
  readonly scene: ReadonlySignal<Scene | null>;
  readonly weights: ReadonlySignal<readonly Place[]>; // of the model files, on the file axis
  private readonly buffers: ReadonlySignal<readonly BufferPlace[]>; // on the axis of the buffers
  private readonly session: OpenSession;
  private readonly options: ReadonlySignal<MapOptions>;
  private readonly pictures: MapPictures;
  private readonly residency: MapResidency;
  private readonly experts: ReadonlySignal<Range | null>;
  private readonly stops: (() => void)[];

  constructor(
    session: OpenSession,
    options: ReadonlySignal<MapOptions>,
    pictures: MapPictures,
    residency: MapResidency,
    experts: ReadonlySignal<Range | null>, // that the filter selects; null: all
  ) {
    this.experts = experts;
    this.session = session;
    this.options = options;
    this.pictures = pictures;
    this.residency = residency;
    this.weights = computed(() => {
      const graph = graphOf(session).state.value.value;
      const info = session.info.value;
      const experts = info.is === 'ready' ? (info.value.n_experts ?? 0) : 0;
      const files = pictures.of('file')?.y.sections ?? [];
      return graph ? weightPlaces(graph.tensors, files, experts) : [];
    });
    this.buffers = computed(() =>
      bufferPlaces(
        bufferTensorsOf(session).state.value.value ?? [],
        pictures.of('buffer')?.y.sections ?? [],
      ),
    );
    const scene = computed(() => this.make());
    this.scene = computed(() => this.withLanes(scene.value));
    this.stops = [
      graphOf(session).use(),
      effect(() => {
        const isBuffer = tracksOf(options.value.y).includes('buffer');
        return isBuffer ? bufferTensorsOf(session).use() : undefined;
      }),
    ];
  }

  destroy(): void {
    for (const stop of this.stops) stop();
  }

  // The tensor at a byte of the files or buffers, by its whole name: the parts of an axis have short
  // ones, which are the same in every layer. Null: none, or memory that many tensors share.
  tensorAt(axis: Axis, at: number): string | null {
    if (axis.name === 'file') return sectionAt(this.weights.value, at)?.name ?? null;
    const place = axis.name === axisName('buffer') ? sectionAt(this.buffers.value, at) : null;
    return place && !isShared(place) ? place.name : null;
  }

  private make(): Scene | null {
    const shown = this.pictures.shown.value;
    if (!shown) return null;
    const { options, live, servers, figures, phase } = shown;
    const { log, palette, shown: values, lens } = this.options.value;
    const names = tracksOf(options.y);
    const units = names.map((name) => unitOf(options, name));
    const common = {
      log,
      palette,
      shown: values,
      lens,
      valueText: (value: number, track: number) => units[track]?.text(value) ?? '',
      marks: options.x === 'token' || options.x === 'step' ? this.marks(options.x) : null,
    } as const;
    const { data } = this.session;
    // What the phase hides has no place on the axis.
    const range = phaseRange(data, options.x, phase);
    if (live) {
      void live.version.value;
      const x = within(columnAxis(data, live.values.unit, live.values.units), range);
      const y = layerAxis(live.values.rows);
      return { ...common, x, tracks: [{ title: 'layer', y, source: live, figures: figures[0] ?? null, share: 1 }] }; // prettier-ignore
    }
    const pictures = servers.map(({ picture }) => picture.value);
    const first = pictures[0];
    if (!first) return null;
    const isColumn = options.x === 'token' || options.x === 'step';
    const text = isColumn ? columnAxis(data, options.x, 1).textOf : undefined;
    const x = within(axisFrom(first.x, text ? { textOf: text } : {}), range);
    const tracks = servers.flatMap((source, i): readonly Track[] => {
      const picture = pictures[i];
      const name = names[i] ?? '';
      if (!picture) return [];
      const share = name === 'buffer' ? 2 : 3;
      return [{ title: titleOf(name), y: this.yAxis(name, picture), source, figures: figures[i] ?? null, share }]; // prettier-ignore
    });
    return { ...common, x, tracks };
  }

  // What is in memory changes more often than the rest.
  private withLanes(scene: Scene | null): Scene | null {
    const residency = this.residency.state.value;
    const files = this.pictures.of('file')?.y.sections;
    if (!scene || !files || residency?.is !== 'known') return scene;
    const lanes = lanesOf(residency.weights, files);
    return {
      ...scene,
      tracks: scene.tracks.map((track) => (track.y.name === 'file' ? { ...track, lanes } : track)),
    };
  }

  private yAxis(name: string, { y }: Picture): Axis {
    if (name === 'buffer') {
      const places = this.buffers.value;
      const axis = axisFrom(y);
      return {
        ...axis,
        outer: buffersOf(axis.outer, places),
        groups: layersInBuffers(axis.outer, places),
        parts: partsOf(places.filter((one) => !isShared(one))),
      };
    }
    if (name === 'op') {
      const graph = graphOf(this.session).state.value.value;
      return withOpTypes(axisFrom(y), (output) => {
        const tensor = graph?.tensorOf.get(output);
        return (tensor === undefined ? null : graph?.producers.get(tensor)?.op) ?? null;
      });
    }
    if (name === 'expert') return within(axisFrom(y), this.experts.value);
    if (name !== 'file') return axisFrom(y);
    const places = this.weights.value;
    return places.length === 0
      ? axisFrom(y)
      : axisFrom(y, { groups: layersOf(places), parts: partsOf(places) });
  }

  private marks(unit: ColumnUnit): Scene['marks'] {
    const { data } = this.session;
    return {
      pixels: (x, width) => this.pictures.marks[unit].pixels(x, width),
      columnEnds: (at) => unit === 'step' || isLastOfStep(data, at),
      together: promptSteps(data, unit),
    };
  }
}

const titleOf = (name: string): string =>
  name === 'file' ? sourceName('disk') : name === 'buffer' ? 'buffers' : axisName(name);

function isLastOfStep(data: TraceData, token: number): boolean {
  const step = data.stepOfToken(token);
  return step === null || step !== data.stepOfToken(token + 1);
}
