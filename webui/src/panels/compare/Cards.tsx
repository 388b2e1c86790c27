// The charts of a comparison, drawn anew when something else is compared.
import { useSignal, type Signal } from '@preact/signals';
import type { Pointed } from '../../charts/ChartView';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { ChartCard } from '../analytics/ChartCard';
import type { ChartSpec } from '../analytics/spec';

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly specs: readonly ChartSpec[];
  readonly of: string; // what is compared
  readonly cursor?: Signal<Pointed | null>; // one for all: their rows and columns are the same
}

export function Cards({ store, session, specs, of, cursor }: Props) {
  const shown = useSignal<Readonly<Record<string, string>>>({});
  return (
    <>
      {specs.map((spec) => (
        <ChartCard
          key={`${spec.id} ${of}`}
          store={store}
          session={session}
          spec={spec}
          steps={session.answeredSteps.value}
          shown={shown.value[spec.id]}
          {...(cursor && { cursor })}
          show={(kind) => {
            shown.value = { ...shown.value, [spec.id]: kind };
          }}
        />
      ))}
    </>
  );
}
