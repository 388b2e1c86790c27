// Where the page finds a NaN without statistics of the session: a breakpoint of the next run sees every
// op, and the weights are read from the model file.
import type { Store } from '../../state/store';
import { encodeWeights, defaultWeights } from '../weights/weights_options';

const BREAKPOINT = 'if nan';

export function NanWays({ store }: { store: Store }) {
  return (
    <>
      {store.has('debug') && (
        <button
          type="button"
          class="link"
          title={`Sets the breakpoint “${BREAKPOINT}”: the next run stops at the first op whose output has NaN`}
          onClick={() => {
            void store.debug.add(BREAKPOINT);
            store.reveal('debug');
          }}
        >
          Debugger: stop the next run at the first NaN
        </button>
      )}
      {store.has('weights') && (
        <button
          type="button"
          class="link"
          title="The column “not finite” counts NaN and infinite values of each tensor"
          onClick={() => {
            store.navigation.setOptions('weights', encodeWeights(defaultWeights), 'push');
            store.navigation.setSort('weights', '-not_finite');
            store.reveal('weights');
          }}
        >
          Weights: sort by “not finite”
        </button>
      )}
    </>
  );
}
