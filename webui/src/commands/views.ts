// Every view of the map, the graph and the table as a command, and every way out of the page: exports,
// the report, and the commands of tt that give the same.
import { KIND_NAMES, KINDS as COMPARED_KINDS } from '../panels/compare/options';
import { FORMS } from '../graph/graph_options';
import { exportOf, reportOf, type ExportFormat, type FileRequest, type ReportFormat } from '../net/api'; // prettier-ignore
import { PAGES, PAGE_TITLES, PAGE_WORDS } from '../panels/analytics/page_list';
import { GROUP_NAMES } from '../panels/table/table_options';
import { encodeTable, defaultTable, GROUPS, ROW_KINDS } from '../panels/table/table_options';
import { axisName } from '../panels/map/units';
import {
  defaultOptions,
  encodeOptions,
  PRESETS,
  withAxes,
  Y_AXES,
} from '../panels/map/map_options';
import type { OpenSession } from '../state/session/open_session';
import { isInRange } from '../state/view/step_range';
import type { Store } from '../state/store';
import { copyText } from '../ui/clipboard';
import type { Command } from './command';

const MAP_WORDS: Readonly<Partial<Record<(typeof Y_AXES)[number], string>>> = {
  head: 'heads attention',
  expert: 'experts moe routing',
  op_kind: 'op types kinds',
  memory: 'file buffers heat map',
  file: 'model file offsets',
  buffer: 'kv cache repacked buffers',
};

export function viewCommands(store: Store): readonly Command[] {
  const group = 'Views';
  const enabled = (): boolean => store.open.peek() !== null;
  const show = (id: string, title: string, words: string, panel: string, options: string): Command => ({
    id: `view-${id}`,
    title,
    words,
    group,
    enabled,
    run: () => {
      store.navigation.setOptions(panel, options, 'push');
      store.reveal(panel);
    },
  }); // prettier-ignore
  return [
    ...PRESETS.map(({ id, title, hint, options }) =>
      show(`map-${id}`, `Map: ${title}`, `${hint} dashboard chart`, 'map', encodeOptions(withAxes(defaultOptions, options))),
    ),
    ...Y_AXES.map((y) =>
      show(`map-rows-${y}`, `Map: rows by ${axisName(y)}`, MAP_WORDS[y] ?? '', 'map', encodeOptions(withAxes(defaultOptions, { y }))),
    ),
    ...FORMS.map((form) =>
      show(`graph-${form}`, `Graph: ${form === 'list' ? 'nodes as a list' : form}`, 'diagram', 'graph', form === 'layer' ? '' : form),
    ),
    ...ROW_KINDS.map((rows) =>
      show(`table-${rows}`, `Table: ${rows}`, 'rows list', 'table', encodeTable({ ...defaultTable, rows })),
    ),
    ...PAGES.map((page) =>
      show(`analytics-${page}`, `Analytics: ${PAGE_TITLES[page]}`, `${PAGE_WORDS[page]} chart`, 'analytics', page === 'overview' ? '' : `page:${page}`),
    ),
    ...(store.has('compare') ? COMPARED_KINDS : []).map((of) =>
      show(`compare-${of}`, `Compare: ${KIND_NAMES[of]}`, 'difference diff two runs beside each other', 'compare', of === 'sessions' ? '' : `of:${of}`),
    ),
    ...GROUPS.map((by) =>
      show(`totals-${by}`, `Table: totals by ${GROUP_NAMES[by]}`, 'dashboard sums statistics breakdown', 'table', encodeTable({ ...defaultTable, by, all: true })),
    ),
  ]; // prettier-ignore
}

const FORMATS: Readonly<Record<ExportFormat, string>> = {
  csv: 'CSV',
  json: 'JSON',
  ndjson: 'NDJSON log',
  parquet: 'Parquet',
  arrow: 'Arrow stream',
  'arrow-file': 'Arrow file',
  chrome: 'Chrome trace',
  perfetto: 'Perfetto trace',
  dot: 'Graphviz graph',
  folder: 'run folder',
  html: 'HTML with the page',
};
// Formats with a row for each access: they can have it once for each token.
const FORMATS_PER_TOKEN: readonly ExportFormat[] = ['csv', 'json', 'parquet', 'arrow', 'arrow-file', 'folder']; // prettier-ignore
const REPORTS: Readonly<Record<ReportFormat, string>> = { html: 'HTML', md: 'Markdown', json: 'JSON' }; // prettier-ignore

const entriesOf = <K extends string>(of: Readonly<Record<K, string>>): readonly (readonly [K, string])[] =>
  Object.entries(of) as [K, string][]; // prettier-ignore

// The first and the last step of the range in the view; null: it is not a range of steps.
function exportedSteps(store: Store): readonly [number, number] | null {
  const { range } = store.navigation.view.peek();
  const open = store.open.peek();
  if (!range || !open) return null;
  const { steps } = open.data;
  const inside = steps.flatMap((step) => (step && isInRange(step, range) ? [step.step] : []));
  const [first, last] = [inside[0], inside.at(-1)];
  if (first === undefined || last === undefined || inside.length === steps.length) return null;
  return [first, last];
}

export function exportCommands(store: Store): readonly Command[] {
  const group = 'Export';
  const enabled = (): boolean => store.open.peek()?.info.peek().is === 'ready';
  const save = (name: string, end: string, request: (session: OpenSession) => FileRequest) => (): void => {
    const open = store.open.peek();
    if (open) void store.saves.save(name, `${open.id}${end}`, request(open));
  }; // prettier-ignore
  const steps = exportedSteps(store);
  const { other } = store.navigation.view.peek();
  const rows = store.saves.rows.peek();
  const { perHead, perToken } = rows;
  const flags = `${perHead ? ' --per-head' : ''}${perToken ? ' --per-token' : ''}`;
  const part = steps === null ? 'the session' : steps[0] === steps[1] ? `step ${steps[0]}` : `steps ${steps[0]} to ${steps[1]}`; // prettier-ignore
  const copy = (id: string, title: string, words: string, line: (file: string) => string): Command => ({
    id,
    title,
    words,
    group: 'Command line',
    enabled,
    run: () => {
      const file = `${store.open.peek()?.id ?? ''}.ttrace`;
      void copyText(line(file)).then((copied) => {
        if (copied) store.toasts.done(`Copied: ${line(file)}`);
        else store.toasts.error('The browser denied access to the clipboard.');
      });
    },
  }); // prettier-ignore
  return [
    ...entriesOf(FORMATS).map(([format, name]): Command => ({
      id: `export-${format}`,
      title: `Export ${part} as ${name}`,
      words: 'download save session',
      group,
      enabled: () => enabled() && (!perToken || FORMATS_PER_TOKEN.includes(format)),
      run: save(name, `.${format}`, ({ id }) => exportOf(id, format, steps, rows)),
    })),
    ...entriesOf(REPORTS).map(([format, name]): Command => ({
      id: `report-${format}`,
      title: `Report as ${name}`,
      words: 'export download save findings summary',
      group,
      enabled,
      run: save('Report', `-report.${format}`, ({ id }) => reportOf(id, format, null)),
    })),
    ...(other === null ? [] : entriesOf(REPORTS)).map(([format, name]): Command => ({
      id: `report-compared-${format}`,
      title: `Report with the comparison as ${name}`,
      words: 'export download save difference two runs',
      group,
      enabled,
      run: save('Report', `-compared.${format}`, ({ id }) => reportOf(id, format, other)),
    })),
    ...(other === null
      ? []
      : [
          copy('cli-compare', 'Copy the command: tt compare', 'cli shell terminal difference', (file) => `tt compare ${file} ${other}.ttrace`),
          copy('cli-report-compare', 'Copy the command: tt report --compare', 'cli shell terminal difference', (file) => `tt report ${file} --compare ${other}.ttrace -o report.html`),
        ]),
    copy('cli-report', 'Copy the command: tt report', 'cli shell terminal', (file) => `tt report ${file} -o report.html`),
    copy('cli-export', 'Copy the command: tt export', 'cli shell terminal parquet csv', (file) => `tt export ${file} -o ${file.replace('.ttrace', '.parquet')}${flags}`),
    copy('cli-show', 'Copy the command: tt show', 'cli shell terminal summary', (file) => `tt show ${file}`),
    copy('cli-sql', 'Copy the command: tt sql', 'cli shell terminal query', (file) => `tt sql ${file} "SELECT * FROM step LIMIT 10"`),
  ]; // prettier-ignore
}
