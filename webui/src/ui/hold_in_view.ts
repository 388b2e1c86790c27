// Keeps an element where it is in its scrolling box while what is around it is loaded and laid out, until
// the visitor does something.

const INPUTS = ['wheel', 'pointerdown', 'touchstart', 'keydown'] as const;
const MAX_FRAMES = 600; // until the element is there: its panel may be loaded first

let held: (() => void) | null = null; // ends what is held

export const isHolding = (): boolean => held !== null;

// `find`: the element, when it is there. `offset`: of its top from the top of the box that scrolls.
export function holdInView(box: () => Element | null, find: (box: Element) => Element | null, offset = 0): void {
  held?.();
  let frame = 0;
  let frames = 0;
  const observer = new ResizeObserver(() => {
    place();
  });
  const end = (): void => {
    cancelAnimationFrame(frame);
    observer.disconnect();
    for (const input of INPUTS) removeEventListener(input, end, true);
    if (held === end) held = null;
  };
  const place = (): void => {
    const around = box();
    const element = around && find(around);
    if (!around || !element) return;
    const by = element.getBoundingClientRect().top - around.getBoundingClientRect().top - offset;
    if (Math.abs(by) >= 1) around.scrollBy({ top: by, behavior: 'instant' });
  };
  const wait = (): void => {
    const around = box();
    if (around && find(around)) {
      place();
      for (const part of around.children) observer.observe(part);
      observer.observe(around);
    } else if ((frames += 1) < MAX_FRAMES) frame = requestAnimationFrame(wait);
    else end();
  };
  held = end;
  for (const input of INPUTS) addEventListener(input, end, { capture: true, passive: true });
  wait();
} // prettier-ignore
