// The memory strip across the page: where the bytes are, what the model touches now, and what that
// costs. Permanent while a session is open.
import { computed, effect, useSignal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { exactBytes, formatBytes, formatNs } from '../format';
import { gradientOf } from '../plane/colours';
import { ok } from '../result';
import type { OpenSession } from '../state/session/open_session';
import { graphOf, perSession, type TemplateGraph, executedOp } from '../state/session/per_session';
import { firstGraphOf } from '../state/session/first_graph';
import { Resource } from '../state/resource';
import { limitOf } from '../state/request/run_limit';
import type { Store } from '../state/store';
import { usePart, useResource } from '../ui/hooks';
import { bandAt, bandsOf, bandsOfFiles, bandsOfOps, bandsOfTensor, type Bands } from './bands';
import { figuresOf } from './figures';
import { isTimed, MEMORY_NAMES, STRIP_PALETTE, StripChart } from './strip_chart';

const FADE_FRAME_MS = 100; // as often as a run updates the page: a paint costs the most of it
const WAITS_MS = 5000;

export function Strip({ store }: { store: Store }) {
  const session = store.open.value;
  return session && <SessionStrip key={session.id} store={store} session={session} />;
}

// The major page faults of the session; null: not recorded, as the findings say it.
const waitsOf = perSession((session) => {
  const { api, reconnects } = session.context;
  return new Resource<number | null>({
    key: () => {
      // The facts of a running session are read every second; this sum less often.
      const info = session.info.value;
      if (info.is !== 'ready') return null;
      return info.value.state === 'running'
        ? `running ${Math.floor(Date.now() / WAITS_MS)}`
        : `${info.value.state} ${info.value.steps ?? 0}`;
    },
    load: async (abort) => {
      const picture = await api.heatmap(
        session.id,
        { x: 'all', y: 'all', value: 'faults', width: 1, height: 1 },
        abort,
      );
      if (!picture.ok) return picture;
      const info = session.info.peek();
      const isKnown = info.is === 'ready' && info.value.facts?.['trace.page_faults'] !== undefined;
      return ok(isKnown || picture.value.total > 0 ? picture.value.total : null);
    },
    reconnects,
  });
});

const EMPTY: Bands = { groups: [], bands: [] };

function SessionStrip({ store, session }: { store: Store; session: OpenSession }) {
  const own = useResource(graphOf(session)).value;
  const first = firstGraphOf(store, session);
  const other = useResource(first.graph).value;
  const files = useResource(first.files).value;
  const graph = own ?? other;
  const bands = useMemo(
    () => (graph ? bandsOf(graph.tensors) : files ? bandsOfFiles(files) : EMPTY),
    [graph, files],
  );
  const ops = useMemo(
    () =>
      graph ? bandsOfOps(bands, graph.nodes, graph.tensors) : new Map<number, readonly number[]>(),
    [graph, bands],
  );
  return (
    <section class="strip" aria-label="Memory" data-active={session.active.value}>
      <Chart store={store} session={session} graph={graph} bands={bands} ops={ops} />
      {graph && <Key store={store} session={session} />}
      <Figures store={store} session={session} />
    </section>
  );
}

const KEY_HINT =
  'Colour of weights: the time of their layer in this step, logarithmic. Grey: the KV cache or recurrent state, whose own time is not known, and the compute buffers, which all layers share. A frame marks what the selected op touches, or the layer of the selected weight in the file; while the model runs, what the running op touches glows.';

// What the colours mean.
function Key({ store, session }: { store: Store; session: OpenSession }) {
  const step = session.step.value;
  return (
    <div class="strip-key" title={KEY_HINT}>
      <span>time of the layer{step !== null && `, step ${step}`}</span>
      <span>
        fast
        <i
          class="colour-scale"
          style={{ background: gradientOf(STRIP_PALETTE, store.theme.value === 'light') }}
          aria-hidden="true"
        />
        slow
        <i class="strip-mark" aria-hidden="true" />
        running or selected
      </span>
    </div>
  );
}

function Chart(props: {
  store: Store;
  session: OpenSession;
  graph: TemplateGraph | null;
  bands: Bands;
  ops: ReadonlyMap<number, readonly number[]>;
}) {
  const { store, session, graph, bands, ops } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const tip = useSignal<StripTipAt | null>(null);
  useEffect(() => {
    if (!canvas.current) return;
    const chart = new StripChart(canvas.current);
    let timer: ReturnType<typeof setTimeout> | null = null;
    const marked = computed(() => {
      const { selection } = store.navigation.view.value;
      const op = executedOp(session, selection);
      if (op !== null) return ops.get(op) ?? [];
      return selection?.kind === 'tensor' ? bandsOfTensor(bands, graph, selection.name) : [];
    });
    const paint = (): void => {
      const { data } = session;
      const step = session.step.peek();
      const shown = step === null || session.active.peek() ? data.lastStep() : data.steps[step];
      const times = data.flight?.layersNs ?? shown?.layers.ns ?? [];
      const now = performance.now();
      if (data.flight) chart.touch(ops.get(data.flight.op) ?? [], now);
      if (store.playback.playing.peek()) chart.touch(marked.peek(), now);
      chart.paint(bands, times, marked.peek(), now);
      if (timer !== null) clearTimeout(timer);
      timer = chart.isGlowing(now) ? setTimeout(paint, FADE_FRAME_MS) : null;
    };
    let frame = 0;
    const paintLater = (): void => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(paint);
    };
    const size = new ResizeObserver(() => {
      chart.resize();
      paintLater();
    });
    size.observe(canvas.current);
    const stops = [
      effect(() => {
        void [session.feed.version.value, session.step.value, marked.value];
        paintLater();
      }),
      effect(() => {
        void store.theme.value;
        chart.themeChanged();
        paintLater();
      }),
    ];
    return () => {
      size.disconnect();
      cancelAnimationFrame(frame);
      if (timer !== null) clearTimeout(timer);
      for (const stop of stops) stop();
    };
  }, [store, session, graph, bands, ops]);
  const at = (event: MouseEvent): number => {
    const width = canvas.current?.clientWidth ?? 1;
    return bandAt(bands, event.offsetX / width);
  };
  const chart = (
    <canvas
      ref={canvas}
      class="strip-chart"
      role="img"
      aria-label={labelOf(bands)}
      onPointerMove={(event) => {
        const index = at(event);
        tip.value = bands.bands[index]
          ? { x: event.offsetX, text: bandText(session, bands, index) }
          : null;
      }}
      onPointerLeave={() => {
        tip.value = null;
      }}
      onClick={(event) => {
        const band = bands.bands[at(event)];
        if (!band) return;
        store.navigation.setOptions('map', 'y:memory,x:all,v:bytes', 'replace');
        store.reveal('map');
        if (band.layer !== null) {
          store.navigation.change({
            layer: band.layer,
            selection: { kind: 'layer', layer: band.layer },
          });
        }
      }}
    />
  );
  return (
    <div class="strip-parts">
      {chart}
      <StripTip tip={tip} width={() => canvas.current?.clientWidth ?? 0} />
    </div>
  );
}

interface StripTipAt {
  readonly x: number;
  readonly text: readonly string[];
}

const TIP_WIDTH = 300; // as in panels.css

// What the part under the pointer is, and what the colours mean.
function StripTip({ tip, width }: { tip: ReadonlySignal<StripTipAt | null>; width: () => number }) {
  if (!tip.value) return null;
  const left = Math.max(0, Math.min(tip.value.x, width() - TIP_WIDTH));
  return (
    <div class="tip" role="status" style={{ left: `${left}px` }}>
      {tip.value.text.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}

function bandText(session: OpenSession, { bands }: Bands, index: number): readonly string[] {
  const band = bands[index];
  if (!band) return [];
  const step = session.step.peek();
  const summary = step === null ? undefined : session.data.steps[step];
  const { layer, memory, bytes } = band;
  const where =
    layer === null ? (memory === 'compute' ? 'buffers' : 'embedding and output') : `layer ${layer}`;
  const time = layer === null ? summary?.layers.ns.at(-1) : summary?.layers.ns[layer];
  const hasTime = time !== undefined && isTimed(memory);
  return [
    `${MEMORY_NAMES[memory]}, ${where}: size ${formatBytes(bytes)} (${exactBytes(bytes)})`,
    ...(hasTime ? [`Colour: time of the layer in step ${step ?? 0}, ${formatNs(time)}; the scale on the right shows what is slow.`] : []),
    ...(session.active.peek() ? ['What the running op touches glows.'] : []),
    'Click shows it in the map.',
  ]; // prettier-ignore
}

function labelOf({ groups }: Bands): string {
  const texts = groups.map(({ memory, bytes }) => `${MEMORY_NAMES[memory]} ${formatBytes(bytes)}`);
  return texts.length === 0 ? 'Memory of the model' : `Memory of the model: ${texts.join(', ')}`;
}

function Figures({ store, session }: { store: Store; session: OpenSession }) {
  useResource(waitsOf(session));
  const text = usePart(() => {
    void session.feed.version.value;
    const waits = waitsOf(session).state.value.value;
    const run = session.run.value;
    const limit = run && limitOf(store, run);
    const info = session.info.value;
    const of = info.is === 'ready' ? info.value : null;
    const figures = figuresOf(session.data, of, run, limit, session.active.value, waits);
    // A speed of a server that does not answer is not measured any more.
    const isAway = session.active.value && store.connection.state.value.is === 'away';
    return JSON.stringify(isAway ? figures.filter(({ live }) => live !== true) : figures);
  });
  const figures = JSON.parse(text) as ReturnType<typeof figuresOf>;
  return (
    <dl class="strip-figures">
      {figures.map(({ name, value, hint }) => (
        <div key={name} title={hint}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
