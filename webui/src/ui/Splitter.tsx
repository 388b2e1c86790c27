// The bar between two areas, moved with the pointer or the arrow keys. `share` is the fraction of
// the area before the bar, or with `from: 'end'` of the area after it. A double click resets it.
const KEY_STEP = 0.02;

export function Splitter(props: {
  label: string;
  direction: 'row' | 'column'; // how the areas are arranged
  share: number;
  from?: 'start' | 'end';
  min: number;
  max: number;
  initial: number;
  move: (share: number) => void;
}) {
  const { direction, from = 'start', min, max } = props;
  const move = (share: number): void => {
    props.move(Math.min(max, Math.max(min, share)));
  };
  const back = direction === 'row' ? 'ArrowLeft' : 'ArrowUp';
  const forward = direction === 'row' ? 'ArrowRight' : 'ArrowDown';
  const sign = from === 'start' ? 1 : -1;
  return (
    <div
      class="splitter"
      data-direction={direction}
      role="separator"
      tabIndex={0}
      aria-label={props.label}
      aria-orientation={direction === 'row' ? 'vertical' : 'horizontal'}
      aria-valuemin={Math.round(100 * min)}
      aria-valuemax={Math.round(100 * max)}
      aria-valuenow={Math.round(100 * props.share)}
      onDblClick={() => {
        move(props.initial);
      }}
      onKeyDown={(event) => {
        if (event.key === back) move(props.share - sign * KEY_STEP);
        else if (event.key === forward) move(props.share + sign * KEY_STEP);
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
        const at =
          direction === 'row'
            ? (event.clientX - box.left) / box.width
            : (event.clientY - box.top) / box.height;
        move(from === 'start' ? at : 1 - at);
      }}
    />
  );
}
