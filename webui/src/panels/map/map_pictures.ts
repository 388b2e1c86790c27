// The pictures of the map: a source for each track. Other axes, values or filters make new sources,
// which replace the old ones when their pictures have arrived. While the session grows, the pictures
// are requested again.
import { computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals';
import type { ApiError } from '../../net/api';
import type { Picture } from '../../net/frames';
import type { PictureQuery } from '../../net/types';
import type { Box } from '../../plane/layout';
import { LiveSource } from '../../plane/sources/live_source';
import { RowFiguresSource, type FiguresWanted } from '../../plane/sources/row_figures';
import { ServerSource } from '../../plane/sources/server_source';
import { ColumnMarks } from '../../plane/sources/column_marks';
import type { OpenSession } from '../../state/session/open_session';
import type { SumQuery } from '../../state/view/sum_query';
import type { PhaseFilter } from '../../state/view/view';
import { tracksOf, type MapOptions } from './map_options';

const REFRESH_MS = 1000; // minimum interval between pictures of a growing session

export interface Made {
  readonly key: string;
  readonly options: MapOptions;
  readonly phase: string; // 'all', or the only one
  readonly live: LiveSource | null;
  readonly servers: readonly ServerSource[]; // by track; empty if live
  readonly figures: readonly RowFiguresSource[]; // by track; empty: x has no steps or tokens
}

export class MapPictures {
  readonly shown: ReadonlySignal<Made | null>; // whose pictures have arrived
  readonly error: ReadonlySignal<ApiError | null>;
  readonly busy: ReadonlySignal<boolean>;
  readonly total: ReadonlySignal<number>; // the sum of everything that the filter selects; 0: unknown
  readonly marks = { step: new ColumnMarks('step'), token: new ColumnMarks('token') } as const;
  private readonly made = signal<Made | null>(null); // shown, or becoming so
  private readonly complete = signal<Made | null>(null);
  private readonly stops: (() => void)[] = [];
  private refreshAt = 0;
  private refreshTimer: ReturnType<typeof setTimeout> | null = null;
  private loadedSteps = 0;
  private wasActive = false;
  private readonly session: OpenSession;
  private readonly box: ReadonlySignal<Box>; // pixels of the plane

  constructor(session: OpenSession, box: ReadonlySignal<Box>) {
    this.session = session;
    this.box = box;
    this.shown = this.complete;
    const servers = computed(() => this.complete.value?.servers ?? []);
    this.error = computed(
      () =>
        (this.made.value?.servers ?? [])
          .map(({ error }) => error.value)
          .find((one) => one !== null) ?? null,
    );
    this.busy = computed(
      () => this.made.value !== this.complete.value || servers.value.some(({ busy }) => busy.value),
    );
    this.total = computed(() => {
      const live = this.complete.value?.live;
      if (live && live.version.value > 0) return live.values.total();
      return servers.value.reduce(
        (most, { picture }) => Math.max(most, picture.value?.total ?? 0),
        0,
      );
    });
    this.stops.push(
      effect(() => {
        void session.feed.version.value;
        void session.active.value;
        untracked(() => {
          this.grow();
        });
      }),
      effect(() => {
        const made = this.made.value;
        const isReady =
          made?.live !== null || made.servers.every(({ picture }) => picture.value !== null);
        if (!made || !isReady) return;
        untracked(() => {
          const before = this.complete.peek();
          if (before === made) return;
          this.complete.value = made;
          destroyAll(before);
        });
      }),
    );
  }

  destroy(): void {
    for (const stop of this.stops) stop();
    if (this.refreshTimer !== null) clearTimeout(this.refreshTimer);
    for (const one of [this.made.peek(), this.complete.peek()]) destroyAll(one);
  }

  // The picture of an axis that is shown.
  of(track: string): Picture | null {
    const shown = this.complete.value;
    const index = shown ? tracksOf(shown.options.y).findIndex((one) => one === track) : -1;
    return shown?.servers[index]?.picture.value ?? null;
  }

  // Shows the axes and the value of the options.
  show(options: MapOptions, query: SumQuery, phase: PhaseFilter): void {
    const key = JSON.stringify([options.x, options.y, options.value, query]);
    const before = this.made.peek();
    if (key === before?.key) return;
    if (before !== this.complete.peek()) destroyAll(before);
    const metric = options.value === 'time' ? 'ns' : options.value === 'bytes' ? 'bytes' : null;
    const isPlain = Object.keys(query).every((name) => name === 'phase');
    const { x } = options;
    const isOfUnits = x === 'step' || x === 'token';
    const queries = tracksOf(options.y).map((y) => ({ ...query, x, y, value: options.value }));
    const figures = isOfUnits ? queries.map((one) => this.figuresSource(one)) : [];
    if (isOfUnits && options.y === 'layer' && metric && isPlain) {
      const live = new LiveSource(metric, phase, x);
      live.update(this.session.data);
      this.made.value = { key, options, phase, live, servers: [], figures };
    } else {
      const servers = queries.map((one) => this.serverSource(one));
      this.made.value = { key, options, phase: query.phase ?? 'all', live: null, servers, figures };
    }
    this.refresh();
  }

  private serverSource(query: PictureQuery): ServerSource {
    const { id, context } = this.session;
    return new ServerSource(({ x, y, width, height }, abort) =>
      context.api.heatmap(
        id,
        {
          ...query,
          width,
          height,
          ...(x ? { x_from: x.from, x_to: x.to } : {}),
          ...(y ? { y_from: y.from, y_to: y.to } : {}),
        },
        abort,
      ),
    );
  }

  private figuresSource(query: PictureQuery): RowFiguresSource {
    const { id, context, data, unrecorded } = this.session;
    return new RowFiguresSource(
      (wanted, abort) => context.api.heatmap(id, figuresQuery(query, wanted), abort),
      // A request has no file before its first step, and none if it is not recorded.
      () => data.steps.length > 0 && !unrecorded.peek(),
    );
  }

  private grow(): void {
    const { data, active } = this.session;
    for (const marks of Object.values(this.marks)) marks.update(data);
    const made = this.made.peek();
    made?.live?.update(data);
    const hasEnded = this.wasActive && !active.peek();
    this.wasActive = active.peek();
    if (made && (data.steps.length !== this.loadedSteps || hasEnded)) this.refreshLater();
  }

  private refreshLater(): void {
    const wait = this.session.active.peek() ? this.refreshAt - Date.now() : 0;
    this.refreshTimer ??= setTimeout(
      () => {
        this.refreshTimer = null;
        this.refresh();
      },
      Math.max(0, wait),
    );
  }

  private refresh(): void {
    this.refreshAt = Date.now() + REFRESH_MS;
    this.loadedSteps = this.session.data.steps.length;
    const { w, h } = this.box.peek();
    const { servers = [], figures = [] } = this.made.peek() ?? {};
    for (const source of figures) source.outdate();
    for (const source of servers)
      void source.refresh(w * devicePixelRatio, (h * devicePixelRatio) / servers.length);
  }
}

// A picture of one column, whose cells are the sums of the rows: a pixel for each row, or for a part of
// the bytes of memory.
export const figuresQuery = (query: PictureQuery, { x, y }: FiguresWanted): PictureQuery => ({
  ...query,
  width: 1,
  height: query.y === 'file' || query.y === 'buffer' ? 512 : 4096,
  row_figures: true,
  ...(x ? { x_from: x.from, x_to: x.to } : {}),
  ...(y ? { y_from: y.from, y_to: y.to } : {}),
});

function destroyAll(made: Made | null): void {
  for (const source of [...(made?.servers ?? []), ...(made?.figures ?? [])]) source.destroy();
}
