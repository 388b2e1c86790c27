// The steps as a table, also the accessible alternative to the heat map.
import { useMemo } from 'preact/hooks';
import { exactBytes, exactNs, formatBytes, formatCount, formatNs, visibleText } from '../../format';
import { nextSort, sortOf, sortText, type Column, type Sort } from '../../grid/vgrid';
import { SortedRows } from '../../grid/sorted_rows';
import type { StepSummary } from '../../net/types';
import { isInPhase, type OpenSession } from '../../state/open_session';
import type { TraceData } from '../../state/trace_data';
import type { PhaseFilter } from '../../state/view';
import { Grid } from '../../ui/Grid';
import { usePart } from '../../ui/hooks';
import type { SessionProps } from '../panel';

const DESCENDING_FIRST = ['duration', 'read', 'written', 'ops', 'accesses', 'tokens'];

const KEYS: Readonly<Record<string, (step: StepSummary) => number | string>> = {
  step: (s) => s.step,
  phase: (s) => s.phase,
  timing: (s) => s.timing,
  tokens: (s) => s.token_count,
  text: (s) => s.token_id,
  ops: (s) => s.ops_timed,
  accesses: (s) => s.accesses,
  template: (s) => s.template ?? 0,
  begin: (s) => s.begin_ns,
  duration: (s) => s.duration_ns,
  read: (s) => s.bytes_read,
  written: (s) => s.bytes_written,
};

export function StepsPanel({ store, session, panel }: SessionProps) {
  const { navigation } = store;
  const version = session.feed.version.value;
  const selected = session.step.value;
  const phase = usePart(() => navigation.view.value.phase);
  const order = usePart(() => navigation.view.value.sorts[panel] ?? 'step');
  const sort = useMemo(() => sortOf(order), [order]);
  const steps = useMemo(() => new SortedSteps(phase, sort), [session, phase, sort]);
  steps.update(session.data);
  const { rows } = steps;
  const columns = useMemo(() => columnsFor(session), [session]);
  const active = steps.indexOf(session.data, selected);
  return (
    <div class="table">
      <Grid
        label="Steps of the session"
        columns={columns}
        rows={rows}
        version={version}
        sort={sort}
        active={active}
        onSort={(key) => {
          navigation.setSort(panel, sortText(nextSort(sort, key, DESCENDING_FIRST)));
        }}
        onActivate={(step, by) => {
          navigation.toStep(step.step, by === 'key' ? 'coalesce' : 'push');
        }}
      />
    </div>
  );
}

// The steps of a phase in order. New steps are inserted; only replaced steps sort all again.
class SortedSteps {
  private sorted: SortedRows<StepSummary>;
  private next = 0; // first step of the session that was not read
  private rewrites = 0;
  private readonly phase: PhaseFilter;
  private readonly compare: (a: StepSummary, b: StepSummary) => number;

  constructor(phase: PhaseFilter, sort: Sort) {
    const key = KEYS[sort.key] ?? ((step: StepSummary) => step.step);
    const sign = sort.descending ? -1 : 1;
    this.phase = phase;
    this.compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      return x === y ? a.step - b.step : x < y ? -sign : sign;
    };
    this.sorted = new SortedRows(this.compare);
  }

  get rows(): readonly StepSummary[] {
    return this.sorted.rows;
  }

  update(data: TraceData): void {
    if (data.stepRewrites !== this.rewrites) {
      this.next = 0;
      this.sorted = new SortedRows(this.compare);
    }
    this.rewrites = data.stepRewrites;
    for (; this.next < data.steps.length; this.next += 1) {
      const step = data.steps[this.next];
      if (step && isInPhase(step, this.phase)) this.sorted.add(step);
    }
  }

  indexOf(data: TraceData, selected: number | null): number | null {
    const step = selected === null ? undefined : data.steps[selected];
    return step && isInPhase(step, this.phase) ? this.sorted.indexOf(step) : null;
  }
}

function columnsFor({ data }: OpenSession): readonly Column<StepSummary>[] {
  const text = (step: StepSummary): string => {
    const tokens = data.tokens.slice(step.token_id, step.token_id + step.token_count);
    return visibleText(tokens.map((token) => token?.text ?? '').join(''));
  };
  const flags = (step: StepSummary): string =>
    [step.timing, step.dropped ? 'times lost' : '', step.aborted ? 'aborted' : '']
      .filter(Boolean)
      .join(', ');
  // prettier-ignore
  return [
    { key: 'step', title: 'step', width: 56, align: 'right', text: (s) => String(s.step) },
    { key: 'phase', title: 'phase', width: 80, text: (s) => s.phase },
    { key: 'timing', title: 'timing', width: 76, text: flags, tone: (s) => s.timing },
    { key: 'tokens', title: 'tokens', width: 62, align: 'right', text: (s) => formatCount(s.token_count) },
    { key: 'text', title: 'text', width: 120, grow: 1, mono: true, text },
    { key: 'duration', title: 'duration', width: 88, align: 'right', text: (s) => formatNs(s.duration_ns), exact: (s) => exactNs(s.duration_ns) },
    { key: 'read', title: 'read', width: 84, align: 'right', text: (s) => formatBytes(s.bytes_read), exact: (s) => exactBytes(s.bytes_read) },
    { key: 'written', title: 'written', width: 84, align: 'right', text: (s) => formatBytes(s.bytes_written), exact: (s) => exactBytes(s.bytes_written) },
    { key: 'accesses', title: 'accesses', width: 78, align: 'right', text: (s) => formatCount(s.accesses) },
    { key: 'ops', title: 'ops', width: 62, align: 'right', text: (s) => formatCount(s.ops_timed) },
    { key: 'template', title: 'graph', width: 58, align: 'right', text: (s) => (s.template === null ? '–' : String(s.template)) },
    { key: 'begin', title: 'begin', width: 84, align: 'right', text: (s) => formatNs(s.begin_ns), exact: (s) => exactNs(s.begin_ns) },
  ];
}
