// In place of the rows of a step that is not in the brushed range.
import type { OpenSession } from '../../state/session/open_session';
import { firstInRange, isInRange } from '../../state/view/step_range';
import type { Store } from '../../state/store';
import { usePart } from '../../ui/hooks';
import { Empty } from '../../ui/States';

// Whether the range leaves out the step.
export function useOutside(store: Store, session: OpenSession, step: number): boolean {
  return usePart(() => {
    void session.feed.version.value;
    const summary = session.data.steps[step];
    return summary !== undefined && !isInRange(summary, store.navigation.view.value.range);
  });
}

export function OutsideRange(props: { store: Store; session: OpenSession; step: number }) {
  const { store, session, step } = props;
  const first = usePart(() => firstInRange(session.data, store.navigation.view.value.range));
  return (
    <Empty>
      Step {step} is not in the selected range.{' '}
      {first !== null && (
        <button
          type="button"
          class="link"
          onClick={() => {
            store.navigation.toStep(first);
          }}
        >
          Show step {first} of the range
        </button>
      )}
    </Empty>
  );
}
