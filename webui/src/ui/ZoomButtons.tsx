import type { Plane } from '../state/shell';
import { IconButton } from './Button';

// Over the corner of a plane.
export function ZoomButtons(props: {
  plane: () => Plane | null;
  whole: boolean; // everything is in view already
  reset?: { readonly run: () => void; readonly disabled: boolean };
}) {
  const { plane, whole, reset } = props;
  return (
    <div class="zoom">
      <IconButton icon="plus" label="Zoom in" hint="+" onClick={() => plane()?.zoom(0.7)} />
      <IconButton icon="minus" label="Zoom out" hint="-" onClick={() => plane()?.zoom(1 / 0.7)} />
      <IconButton
        icon="fit"
        label="Show all"
        hint="0"
        disabled={whole}
        onClick={() => plane()?.fit()}
      />
      {reset && (
        <IconButton
          icon="reset"
          label="As at first"
          disabled={reset.disabled}
          onClick={reset.run}
        />
      )}
    </div>
  );
}
