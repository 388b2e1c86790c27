// The bar between two areas: dragged, or moved with the arrow keys. `share` is
// the part of the whole that the area before the bar has, or, with `from: 'end'`,
// the area behind it. A double click gives it back its first size.
const KEY_STEP = 0.02;

export function Splitter(props: {
  label: string;
  direction: 'row' | 'column'; // how the areas stand
  share: number;
  from?: 'start' | 'end';
  least: number;
  most: number;
  usual: number;
  move: (share: number) => void;
}) {
  const { direction, from = 'start', least, most } = props;
  const move = (share: number): void => {
    props.move(Math.min(most, Math.max(least, share)));
  };
  const back = direction === 'row' ? 'ArrowLeft' : 'ArrowUp';
  const forth = direction === 'row' ? 'ArrowRight' : 'ArrowDown';
  const sign = from === 'start' ? 1 : -1;
  return (
    <div
      class="splitter"
      data-direction={direction}
      role="separator"
      tabIndex={0}
      aria-label={props.label}
      aria-orientation={direction === 'row' ? 'vertical' : 'horizontal'}
      aria-valuemin={Math.round(100 * least)}
      aria-valuemax={Math.round(100 * most)}
      aria-valuenow={Math.round(100 * props.share)}
      onDblClick={() => {
        move(props.usual);
      }}
      onKeyDown={(event) => {
        if (event.key === back) move(props.share - sign * KEY_STEP);
        else if (event.key === forth) move(props.share + sign * KEY_STEP);
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
