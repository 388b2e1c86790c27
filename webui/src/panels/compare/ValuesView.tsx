// The captured values of two sessions, op by op, as tt compare --values has them: the first output beyond
// the tolerance, how errors grow over the layers, and both sides of an output as pictures.
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { Pointed } from '../../charts/ChartView';
import { plural } from '../../format';
import { nextSort, sortOf, sortText } from '../../grid/column';
import type { ApiResult } from '../../net/api';
import type { ComparedOutput, ComparedValues } from '../../net/types';
import { ok } from '../../result';
import { Resource } from '../../state/resource';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { finishedSteps } from '../../state/view/answer';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, FailedLoad, Loading } from '../../ui/States';
import type { ChartSpec } from '../analytics/spec';
import { Cards } from './Cards';
import type { CompareOptions } from './options';
import { SIDES } from './SessionFacts';
import {
  firstText,
  GREATEST_FIRST,
  IN_ORDER,
  layersTable,
  outputOf,
  sortedOutputs,
  valuesColumns,
  valuesMaps,
  type ValuesMaps,
} from './values';

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly panel: string;
  readonly options: CompareOptions;
  readonly other: string;
  readonly set: (change: Partial<CompareOptions>) => void;
}

export function ValuesView(props: Props) {
  const { store, session, options, other } = props;
  const { tolerance } = options;
  const resource = useMemo(
    () =>
      new Resource<ComparedValues>({
        key: () => `${finishedSteps(session)} ${tolerance}`,
        load: (signal) => store.api.comparedValues(session.id, other, tolerance, signal),
        reconnects: session.context.reconnects,
      }),
    [store, session, other, tolerance],
  );
  const { value, error } = useResource(resource);
  if (error) {
    return (
      <FailedLoad what="The captured values cannot be compared." resource={resource} />
    );
  }
  if (!value) return <Loading>Comparing values…</Loading>;
  if (value.outputs.length === 0) {
    return (
      <Empty>
        The sessions have no captured output in common. Write a rule such as l_out into “Values of” in
        the settings of both runs: it stores what the ops of this name computed.
      </Empty>
    );
  }
  return <Found {...props} found={value} />;
} // prettier-ignore

function Found(props: Props & { found: ComparedValues }) {
  const { store, session, panel, options, other, set, found } = props;
  const { outputs, total, different } = found;
  const order = usePart(() => store.navigation.view.value.sorts[panel] ?? '');
  const sort = useMemo(() => {
    const wanted = sortOf(order);
    return valuesColumns.some(({ key }) => key === wanted.key) ? wanted : IN_ORDER;
  }, [order]);
  const rows = useMemo(() => sortedOutputs(outputs, sort), [outputs, sort]);
  const chosen = outputs[options.output ?? outputOf(found)] ?? outputs[0];
  const specs = useMemo(
    (): readonly ChartSpec[] => [
      {
        id: 'compare_values_layers',
        page: 'overview',
        title: 'Growth over the layers',
        counts: `The largest relative error of the outputs of each layer${found.other_tokens_from_step === null ? '' : `, before step ${found.other_tokens_from_step}`}`,
        kinds: ['line', 'bar'],
        wide: true,
        honours: 'own',
        empty: 'No compared output is of a layer.',
        request: () => ({
          text: `comparison/${other}/values`,
          sql: null,
          load: () => Promise.resolve(ok(layersTable(found))),
        }),
      },
    ],
    [found, other],
  );
  return (
    <div class="analytics-grid compare">
      <section class="compare-facts" aria-label="Compared values">
        <p class="compare-change">{firstText(found)}</p>
        <p>
          {plural(total, 'output')} compared: {total - different} identical, {different} different;{' '}
          {found.only_left} only in {SIDES.names[0]}, {found.only_right} only in {SIDES.names[1]}.
          {outputs.length < total && ` The first ${outputs.length} are listed.`}
        </p>
        {found.other_tokens_from_step !== null && (
          <p class="warn">
            From step {found.other_tokens_from_step} on, the two runs evaluate different tokens, so
            their values differ. Compare the steps before it, or run both with the same tokens
            (temperature 0).
          </p>
        )}
        <div class="table compare-values">
          <Grid
            label="Compared outputs"
            columns={valuesColumns}
            rows={rows}
            sort={sort}
            active={chosen ? rows.indexOf(chosen) : null}
            revealActive
            onSort={(key) => {
              store.navigation.setSort(panel, sortText(nextSort(sort, key, GREATEST_FIRST)));
            }}
            onActivate={(row) => {
              set({ output: outputs.indexOf(row) });
            }}
          />
        </div>
      </section>
      <Cards {...{ store, session, specs }} of={`${other} ${options.tolerance}`} />
      {chosen && <Pictures {...{ store, session, other }} output={chosen} />}
    </div>
  );
}

// Both sides of an output, and their difference.
function Pictures(props: Pick<Props, 'store' | 'session' | 'other'> & { output: ComparedOutput }) {
  const { store, session, other, output } = props;
  const { step, op, tensor_name: tensor, same_shape: isSame } = output;
  const specs = useMemo((): readonly ChartSpec[] => {
    let asked: ApiResult<ValuesMaps> | null = null;
    const load = async (): ApiResult<ValuesMaps> => {
      const found = await store.api.comparedValuesPicture(session.id, other, { step, op, tensor });
      return found.ok ? ok(valuesMaps(found.value, SIDES.names)) : found;
    };
    const spec = (part: keyof ValuesMaps, title: string, counts: string): ChartSpec => ({
      id: `compare_values_${part}`,
      page: 'overview',
      title,
      counts,
      kinds: ['heat'],
      ...(part === 'difference' ? { wide: true as const } : { half: true as const }),
      height: 300,
      honours: 'own',
      empty: part === 'difference' ? 'Both sides have the same values.' : 'The output has no element.',
      request: () => ({
        text: `comparison/${other}/values/picture?step=${step}&op=${op}&tensor=${encodeURIComponent(tensor)}`,
        sql: null,
        load: async () => {
          asked ??= load();
          const maps = await asked;
          if (!maps.ok) asked = null; // to be tried again
          return maps.ok ? ok(maps.value[part]) : maps;
        },
      }),
    });
    const cells = 'Rows are tokens, or heads of tokens. A cell of several elements has the one that differs most';
    return [
      spec('left', `${tensor} of ${SIDES.names[0]}`, `Step ${step}. ${cells}; both pictures have one scale and one cursor`),
      spec('right', `${tensor} of ${SIDES.names[1]}`, `Step ${step}. ${cells}`),
      spec('difference', `Difference of ${tensor}`, `${SIDES.names[1]} − ${SIDES.names[0]}, of the same elements`),
    ];
  }, [store, session, other, step, op, tensor]); // prettier-ignore
  const cursor = useSignal<Pointed | null>(null);
  if (!isSame) return <Empty>{tensor} has another shape in the other session.</Empty>;
  return <Cards {...{ store, session, specs, cursor }} of={`${other} ${step} ${op} ${tensor}`} />;
}
