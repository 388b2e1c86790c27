// The bar between two panels, one above the other: dragged, or moved with the
// arrow keys. `share` is the upper panel's part of the height.
const LEAST = 0.2;
const MOST = 0.8;
const KEY_STEP = 0.02;

export function Splitter(props: { label: string; share: number; move: (share: number) => void }) {
  const move = (share: number): void => {
    props.move(Math.min(MOST, Math.max(LEAST, share)));
  };
  return (
    <div
      class="splitter"
      role="separator"
      tabIndex={0}
      aria-label={props.label}
      aria-orientation="horizontal"
      aria-valuemin={100 * LEAST}
      aria-valuemax={100 * MOST}
      aria-valuenow={Math.round(100 * props.share)}
      onKeyDown={(event) => {
        if (event.key === 'ArrowUp') move(props.share - KEY_STEP);
        else if (event.key === 'ArrowDown') move(props.share + KEY_STEP);
        else return;
        event.preventDefault();
      }}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        event.preventDefault();
      }}
      onPointerMove={(event) => {
        const bar = event.currentTarget;
        const box = bar.parentElement?.getBoundingClientRect();
        if (!box || !bar.hasPointerCapture(event.pointerId)) return;
        move((event.clientY - box.top) / box.height);
      }}
    />
  );
}
