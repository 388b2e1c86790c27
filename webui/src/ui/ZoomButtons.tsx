import type { Viewport } from '../state/shell';
import { IconButton } from './Button';

// Zoom buttons in the corner of a chart.
export function ZoomButtons(props: {
  viewport: () => Viewport | null;
  whole: boolean; // everything is in view
  reset?: { readonly run: () => void; readonly disabled: boolean };
}) {
  const { viewport, whole, reset } = props;
  return (
    <div class="zoom">
      <IconButton icon="plus" label="Zoom in" hint="+" onClick={() => viewport()?.zoom(0.7)} />
      <IconButton
        icon="minus"
        label="Zoom out"
        hint="-"
        onClick={() => viewport()?.zoom(1 / 0.7)}
      />
      <IconButton
        icon="fit"
        label="Show all"
        hint="0"
        disabled={whole}
        onClick={() => viewport()?.fit()}
      />
      {reset && (
        <IconButton icon="reset" label="Reset view" disabled={reset.disabled} onClick={reset.run} />
      )}
    </div>
  );
}
