// The layer of all views, and the one before and after it.
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';

export function LayerStepper({ store, layer }: { store: Store; layer: number }) {
  const layers = store.layers.value;
  return (
    <span class="stepper">
      <IconButton
        icon="left"
        label="Previous layer"
        hint="{"
        disabled={layer === 0}
        onClick={() => {
          store.moveLayer(-1, false);
        }}
      />
      <b>layer {layer}</b>
      <IconButton
        icon="right"
        label="Next layer"
        hint="}"
        disabled={layer >= layers - 1}
        onClick={() => {
          store.moveLayer(1, false);
        }}
      />
    </span>
  );
}
