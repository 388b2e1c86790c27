// The session in charts, by page.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import '../../charts/charts.css';
import './analytics.css';
import { plural } from '../../format';
import { usePart } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import { Empty, Loading } from '../../ui/States';
import type { OpenSession } from '../../state/session/open_session';
import { CAPTURES, type Capture } from '../../state/request/request';
import type { Store } from '../../state/store';
import { holdInView, isHolding } from '../../ui/hold_in_view';
import type { SessionProps } from '../panel';
import { CHARTS } from './all_charts';
import { ChartCard } from './ChartCard';
import { decodeAnalytics, encodeAnalytics, type AnalyticsOptions } from './options';
import { attentionRequest } from './pages/attention';
import { choicesRequest, marginsRequest } from './pages/experts';
import { residualRequest, surpriseRequest } from './pages/lens';
import { MemorySlider, SlotSlider, useTable } from './Sliders';
import { PageFindings } from './PageFindings';
import { PAGES, PAGE_TITLES, type PageId } from './page_list';
import type { ChartRequest, ChartSpec } from './spec';
import { Tiles } from './Tiles';

// What of the KV cache an earlier request had computed.
function Prefix({ session }: { session: OpenSession }) {
  const info = session.info.value;
  const { reused_tokens: reused = 0, reused_from: from = null } =
    info.is === 'ready' ? info.value : {};
  return (
    <p class="page-findings">
      {reused === 0
        ? 'No token was reused from the KV cache of an earlier request: the whole prompt was evaluated.'
        : `${plural(reused, 'token')} of the prompt ${reused === 1 ? 'was' : 'were'} reused from the KV cache of an earlier request${from === null ? '' : `, session ${from}`}: no step evaluated them.`}
    </p>
  );
}

// The server says why there is nothing.
function NoExperts({ session, steps }: { session: OpenSession; steps: number }) {
  const choices = useTable(session, steps, 'experts', choicesRequest());
  if (!choices) return <Loading />;
  return (
    <Empty>
      {choices.missing} <span class="mono">tt model moe -o moe.gguf</span> makes a small one.
    </Empty>
  );
}

// The request that shows whether it was captured.
const CAPTURED: Readonly<Record<Capture, ChartRequest>> = {
  attention: attentionRequest(),
  lens: surpriseRequest(),
  residual: residualRequest(),
  router: marginsRequest(),
};

const FACTS = CHARTS.flatMap(({ fact }) => fact ?? []);

const isOn = (page: PageId, what: Capture): boolean =>
  CHARTS.some((spec) => spec.page === page && spec.only === what);

// Charts of what was captured: nothing in a session that has none, where one chart says why.
function IfCaptured(props: { session: OpenSession; steps: number; what: Capture; children: ComponentChildren }) {
  const { session, steps, what, children } = props;
  const found = useTable(session, steps, what, CAPTURED[what]);
  return found && found.keys.length > 0 ? children : null;
} // prettier-ignore

// The filter may have come with a question of another view.
function Filter({ store }: { store: SessionProps['store'] }) {
  const filter = usePart(() => store.navigation.view.value.filter);
  if (filter === '') return null;
  return (
    <span class="analytics-filter">
      <span class="warn">Filter {filter}</span>{' '}
      <button
        type="button"
        class="link"
        onClick={() => {
          store.setFilter('', 'push');
        }}
      >
        Clear
      </button>
    </span>
  );
}

// The chart at the top of the panel, and how far below the top it begins: the next session begins there.
interface Seen {
  readonly page: PageId;
  readonly chart: string;
  readonly offset: number;
}
const seenOf = new WeakMap<Store, Seen>();

function topChart(box: Element, page: PageId): Seen | null {
  const { top } = box.getBoundingClientRect();
  for (const card of box.querySelectorAll<HTMLElement>('[data-chart]')) {
    const rect = card.getBoundingClientRect();
    if (rect.bottom > top) return { page, chart: card.dataset.chart ?? '', offset: rect.top - top };
  }
  return null;
}

export function AnalyticsPanel({ store, session, panel }: SessionProps) {
  const options = decodeAnalytics(usePart(() => store.navigation.view.value.options[panel] ?? ''));
  const arrived = session.answeredSteps.value;
  const isRunning = session.active.value;
  // The figures of a running session are those of its steps so far, until the visitor asks again:
  // adding up slows the model.
  const asked = useSignal(arrived);
  const steps = isRunning ? asked.value : arrived;
  const set = (change: Partial<AnalyticsOptions>, how: 'push' | 'replace' | 'debounced'): void => {
    store.navigation.setOptions(panel, encodeAnalytics({ ...options, ...change }), how);
  };
  const hasExperts = usePart(() => {
    const info = session.info.value;
    return info.is === 'ready' && (info.value.n_experts ?? 0) > 0;
  });
  // Names of those that decide which charts there are.
  const facts = usePart(() => {
    const info = session.info.value;
    const known = info.is === 'ready' ? info.value.facts : undefined;
    return FACTS.filter((name) => known?.[name] !== undefined).join();
  });
  const { page } = options;
  const scroller = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const seen = seenOf.get(store);
    // A question shows its chart.
    if (seen?.page !== page || isHolding()) return;
    holdInView(() => scroller.current, (box) => box.querySelector(`[data-chart="${seen.chart}"]`), seen.offset); // prettier-ignore
  }, [store, session]);
  const isEmptyPage = page === 'experts' && !hasExperts;
  const cards = (only: ChartSpec['only']) =>
    CHARTS.filter(
      (spec) =>
        spec.page === page &&
        spec.only === only &&
        (spec.fact === undefined || facts.split(',').includes(spec.fact)),
    ).map((spec) => (
      <ChartCard
        key={spec.id}
        store={store}
        session={session}
        spec={spec}
        steps={steps}
        shown={options.shown[spec.id]}
        show={(kind) => {
          set({ shown: { ...options.shown, [spec.id]: kind } }, 'replace');
        }}
      />
    ));
  return (
    <>
      <div class="toolbar analytics-tools">
        <Segmented
          label="Page"
          value={page}
          options={PAGES.map((one) => ({ value: one, text: PAGE_TITLES[one] }))}
          choose={(one) => {
            set({ page: one }, 'push');
          }}
        />
        <span class="toolbar-end" />
        <Filter store={store} />
        {isRunning && (
          <span class="dim">
            of the first {plural(steps, 'step')}{' '}
            <button
              type="button"
              class="link"
              onClick={() => {
                asked.value = arrived;
              }}
            >
              Update
            </button>
          </span>
        )}
      </div>
      <div
        ref={scroller}
        class="analytics"
        key={page}
        onScroll={({ currentTarget }) => {
          const seen = currentTarget.scrollTop > 0 ? topChart(currentTarget, page) : null;
          if (seen) seenOf.set(store, seen);
          else seenOf.delete(store);
        }}
      >
        <div class="analytics-grid">
          {page === 'overview' && <Tiles session={session} />}
          {!isRunning && <PageFindings store={store} session={session} page={page} />}
          {isEmptyPage && <NoExperts session={session} steps={steps} />}
          {page === 'attention' && <Prefix session={session} />}
          {page === 'reuse' && (
            <MemorySlider
              store={store}
              session={session}
              steps={steps}
              value={options.memory}
              set={(memory) => {
                set({ memory }, 'debounced');
              }}
            />
          )}
          {page === 'experts' && hasExperts && (
            <SlotSlider
              store={store}
              session={session}
              steps={steps}
              value={options.slots}
              set={(slots) => {
                set({ slots }, 'debounced');
              }}
            />
          )}
          {!isEmptyPage && cards(undefined)}
          {CAPTURES.filter((what) => isOn(page, what)).map((what) => (
            <IfCaptured key={what} session={session} steps={steps} what={what}>
              {cards(what)}
            </IfCaptured>
          ))}
        </div>
      </div>
    </>
  );
}
