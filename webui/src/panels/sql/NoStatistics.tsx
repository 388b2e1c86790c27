// What a statement about the values of outputs does not see, and how to see it.
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { usePart } from '../../ui/hooks';
import { TurnOn } from '../../ui/TurnOn';
import { NanWays } from '../debug/NanWays';

// Whether it reads the statistics that ops have at level verbose. Those of captured values, in the
// table value, are in every session that captured some.
export const readsStatistics = (sql: string): boolean =>
  /\boutput_(nan|inf|min|max|mean|std|norm)\b/i.test(sql) && !/\b(from|join)\s+value\b/i.test(sql);

export function NoStatistics({ store, session }: { store: Store; session: OpenSession }) {
  const info = session.info.value;
  const level = info.is === 'ready' ? info.value.level : undefined;
  const isOn = usePart(() => store.settings.current.value.level === 'verbose');
  if (level === undefined) return null;
  if (level === 'verbose')
    return (
      <p class="sql-note">
        Only ops with statistics are in it: those whose output the setting “Statistics of” names. A
        view computes no values and has none.
      </p>
    );
  return (
    <div class="sql-note warn" role="note">
      <p>
        The values of this session were not recorded (level {level}): these rows say nothing about
        them, also not about NaN.
      </p>
      {store.hasServer && (
        <p class="sql-ways">
          <TurnOn
            title="Level verbose"
            isOn={isOn}
            set={() => {
              store.settings.set({ level: 'verbose' });
            }}
          />
          <NanWays store={store} />
        </p>
      )}
    </div>
  );
}
