// The newest run with a plan beside the newest one without it, of the same prompt if possible.
import { useMemo } from 'preact/hooks';
import { fileName, formatAgo } from '../../format';
import type { Model, Session } from '../../net/types';
import { ok } from '../../result';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { useResource } from '../../ui/hooks';
import { RUN_SQL, runFigures, runPair, runRows, type RunFigures, type RunPair } from './runs';

const NEWEST = 100; // sessions that are looked at

interface Runs extends RunPair {
  readonly figures: {
    readonly plain: RunFigures | null;
    readonly planned: RunFigures | null;
  };
}

export function RunComparison({ store, model }: { store: Store; model: Model }) {
  const resource = useMemo(() => runsOf(store, model), [store, model.path, model.size_bytes]);
  const { value, error } = useResource(resource);
  if (error) return <p class="dim">The recorded runs cannot be read.</p>;
  if (!value || (!value.plain && !value.planned)) return null;
  const { plain, planned, isSamePrompt, figures } = value;
  const missing = plain ? 'with' : 'without';
  return (
    <section class="budget-runs" aria-label="Runs">
      <h2>
        The last run with a plan beside the last one without
        {isSamePrompt && ', of the same prompt'}
      </h2>
      <table>
        <thead>
          <tr>
            <td />
            <th scope="col">without {plain && <RunLink store={store} session={plain} />}</th>
            <th scope="col">with {planned && <RunLink store={store} session={planned} />}</th>
            <th scope="col">with / without</th>
          </tr>
        </thead>
        <tbody>
          {runRows(figures.plain, figures.planned).map((row) => (
            <tr key={row.name}>
              <th scope="row" title={row.hint}>
                {row.name}
              </th>
              <td>{row.plain}</td>
              <td>{row.planned}</td>
              <td>{row.ratio}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {plain && planned && !isSamePrompt && (
        <p class="dim">
          Their prompts differ or were not recorded: to compare runs, send the same prompt with and
          without a budget.
        </p>
      )}
      {(!plain || !planned) && (
        <p class="dim">
          There is no run {missing} a plan yet: send a prompt {missing} a budget.
        </p>
      )}
    </section>
  );
}

function RunLink({ store, session }: { store: Store; session: Session }) {
  const budget = session.facts?.['memory.budget'];
  return (
    <button
      type="button"
      class="link"
      title={`Open “${session.title || session.id}”${budget === undefined ? '' : `, with a budget of ${budget} bytes`}`}
      onClick={() => {
        store.navigation.toSession(session.id);
      }}
    >
      {formatAgo(session.start_utc_ns, store.now.value)}
    </button>
  );
}

// Read again when a run begins or ends.
function runsOf(store: Store, model: Model): Resource<Runs> {
  const file = fileName(model.path);
  return new Resource<Runs>({
    key: () => {
      const open = store.open.value;
      const info = open?.info.value;
      return `${open?.id ?? ''} ${info?.is === 'ready' ? info.value.state : ''}`;
    },
    load: async (signal) => {
      const page = await store.api.sessions({ model: file, limit: NEWEST }, signal);
      if (!page.ok) return page;
      const pair = runPair(page.value.sessions, model);
      const figuresOf = async (session: Session | null) =>
        session ? store.api.query(session.id, RUN_SQL, 1, signal) : null;
      const [plain, planned] = await Promise.all([figuresOf(pair.plain), figuresOf(pair.planned)]);
      if (plain && !plain.ok) return plain;
      if (planned && !planned.ok) return planned;
      return ok({
        ...pair,
        figures: {
          plain: pair.plain && plain && runFigures(pair.plain, plain.value),
          planned: pair.planned && planned && runFigures(pair.planned, planned.value),
        },
      });
    },
    reconnects: store.connection.reconnects,
  });
}
