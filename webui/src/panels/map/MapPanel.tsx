// The map: every question of the kind "which part, when, how much" as one picture with axes to
// choose. Presets are its usual axes.
import { computed, signal, type Signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { formatValue } from '../../charts/table';
import { colourOf } from '../../plane/colours';
import type { Plane } from '../../plane/plane';
import { PlaneView, type PlaneModel } from '../../plane/PlaneView';
import { emptyScale, type Scale } from '../../plane/scale';
import { headScores, scoresOf } from '../../state/session/head_scores';
import type { OpenSession } from '../../state/session/open_session';
import type { Viewport } from '../../state/shell';
import type { Store } from '../../state/store';
import type { TraceData } from '../../state/session/trace_data';
import { partNamed } from '../../state/view/selection';
import { usePart } from '../../ui/hooks';
import { lazy } from '../../ui/lazy';
import { Empty, Failed, Loading } from '../../ui/States';
import type { SessionProps } from '../panel';
import { describeCell } from './cell_text';
import { MapFooter } from './MapFooter';
import { MapModel } from './map_model';
import { tracksOf, type XAxis } from './map_options';
import { isOutside } from './map_range';
import { stepAt, tokenAt } from './map_selection';
import { MapToolbar } from './MapToolbar';
import { residencyLines } from './residency';
import { axisName, unitOf, valueName } from './units';

const MapTable = lazy(async () => (await import('./MapTable')).MapTable);

export function MapPanel({ store, session, panel }: SessionProps) {
  const parts = useMemo(
    () => ({
      model: new MapModel(store, session, panel),
      scale: signal<Scale>(emptyScale),
      plane: signal<Plane | null>(null),
    }),
    [store, session, panel],
  );
  const { model, scale, plane } = parts;
  useEffect(
    () => () => {
      model.destroy();
    },
    [model],
  );
  const planeModel = useMemo(() => planeModelOf(store, session, model), [store, session, model]);
  const table = usePart(() => model.options.value.table);
  const label = usePart(() => labelOf(model));
  const hasHeads = usePart(() => tracksOf(model.options.value.y).includes('head'));
  useEffect(() => (hasHeads ? scoresOf(session).use() : undefined), [session, hasHeads]);
  return (
    <>
      <MapToolbar store={store} session={session} model={model} />
      <div class="map-body">
        <PlaneView
          label={label}
          model={planeModel}
          scale={scale}
          plane={plane}
          register={(viewport) =>
            store.shell.registerViewport(panel, { ...viewport, ...filmOf(store, parts) })
          }
          tip={(place, of) => {
            const scene = model.scene.peek();
            if (!scene) return null;
            const cell = of.cellOf(place.hit);
            const { options, total } = model;
            const tensor = tensorOf(model, place.hit);
            const step = stepAt(session.data, options.peek().x, place.hit.x);
            return describeCell({
              hit: place.hit,
              cell,
              context: {
                data: session.data,
                options: options.peek(),
                scene,
                total: total.peek(),
                step,
                tensor,
                isOutside: isOutside(
                  store.navigation.view.peek().range,
                  model.brush.peek(),
                  place.hit,
                  step === null ? undefined : session.data.steps[step],
                ),
                residency: residencyAt(model, tensor),
                scores: (row) => scoresAt(session, row),
              },
            });
          }}
        />
        {table && <MapTable store={store} session={session} model={model} plane={plane} />}
        <State model={model} session={session} />
        <JumpToLive model={model} />
      </div>
      <MapFooter store={store} session={session} model={model} plane={plane} scale={scale} />
    </>
  );
}

interface Parts {
  readonly model: MapModel;
  readonly scale: Signal<Scale>;
  readonly plane: Signal<Plane | null>;
}

function filmOf(store: Store, { model, scale, plane }: Parts): Pick<Viewport, 'film'> {
  return {
    film: () => {
      const options = model.options.peek();
      const unit = unitOf(options, tracksOf(options.y)[0] ?? 'layer');
      const { min, max } = scale.peek();
      const isLight = store.theme.peek() === 'light';
      const colour = (at: number): string =>
        `rgb(${colourOf(options.palette, at, isLight).join(' ')})`;
      const shown = plane.peek()?.shown;
      return {
        host: shown?.host ?? document.body,
        canvases: shown?.canvases ?? [],
        legend: { what: unit.what, least: unit.text(min), most: unit.text(max), colour },
      };
    },
  };
}

function tensorOf(model: MapModel, hit: { track: number; y: number | null }): string | null {
  const axis = model.scene.peek()?.tracks[hit.track]?.y;
  return axis?.kind === 'bytes' && hit.y !== null ? model.tensorAt(axis, hit.y) : null;
}

function residencyAt(model: MapModel, tensor: string | null): ReturnType<typeof residencyLines> {
  const residency = model.residency.peek();
  return tensor !== null && residency?.is === 'known'
    ? residencyLines(residency.weights, tensor, residency.step)
    : [];
}

// Which tokens the head of a row looks at, if its attention weights were captured.
function scoresAt(session: OpenSession, row: string): readonly (readonly [string, string])[] {
  const of = partNamed(row);
  const heads = scoresOf(session).state.peek().value?.heads ?? [];
  const head = of?.kind === 'head' ? heads.find((one) => one.layer === of.layer && one.head === of.head) : undefined; // prettier-ignore
  return head ? headScores(head).map(({ name, unit, value }) => [name, formatValue(unit, value)]) : []; // prettier-ignore
}

// The unit of the x axis of a token that another view points at; null: none.
function pointedAt(data: TraceData, x: XAxis, token: number | null): number | null {
  if (token === null || x === 'token') return token;
  return x === 'step' ? data.stepOfToken(token) : null;
}

function planeModelOf(store: Store, session: OpenSession, model: MapModel): PlaneModel {
  const { scene, camera, marked, brush } = model;
  return {
    scene,
    camera,
    marked,
    brush,
    pointed: computed(() => pointedAt(session.data, model.options.value.x, store.hoverToken.value)),
    theme: store.theme,
    move: (next) => {
      model.move(next);
    },
    select: (hit, compare) => {
      if (!compare || !model.compare(hit)) model.select(hit);
    },
    brushed: (next) => {
      model.setBrush(next);
    },
    pointsAt: (hit) => {
      store.hoverToken.value = hit && tokenAt(session.data, model.options.peek().x, hit.x);
    },
  };
}

function labelOf(model: MapModel): string {
  const { x, y, value } = model.options.value;
  return `${valueName(value)} by ${axisName(y)} and ${axisName(x)}. Arrow keys move, Enter selects, Shift+Enter compares, dragging selects a range. The button Totals shows the rows and their totals as a table.`;
}

function JumpToLive({ model }: { model: MapModel }) {
  if (!model.isBehind.value) return null;
  return (
    <button
      type="button"
      class="pill map-live"
      title="Show the newest step and follow it"
      onClick={() => {
        model.toLive();
      }}
    >
      Jump to live
    </button>
  );
}

// Why there is no picture.
function State({ model, session }: { model: MapModel; session: SessionProps['session'] }) {
  const error = model.error.value;
  const scene = model.scene.value;
  const hasData = usePart(() => {
    void session.feed.version.value;
    return session.data.stepTotals.withLayers > 0;
  });
  const active = session.active.value;
  if (error) return <Failed what="The map cannot be shown." error={error} />;
  if (!scene) return <Loading>Loading the map…</Loading>;
  if (hasData || active) return null;
  return <Empty>No data per layer: the level was minimal, or the step times were lost.</Empty>;
}
