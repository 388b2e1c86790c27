// A tooltip beside the pointer. It moves with it, so it is updated directly, without JSX, and only
// where its text has changed.

interface Point {
  readonly x: number;
  readonly y: number;
}

// What the tooltip must not cover, beside the pointer.
export interface Beside extends Point, Box {}

interface Box {
  readonly w: number;
  readonly h: number;
}

export interface TipText {
  readonly title: string;
  readonly head: string;
  readonly lines: readonly (readonly [name: string, value: string])[];
}

const WIDTH = 300; // as in panels.css
const GAP = 14; // pixels between the pointer and the tooltip
export const TIP_ROOM = WIDTH + GAP; // beside the pointer

export class Tip {
  private readonly element: HTMLElement;
  private readonly title = document.createElement('b');
  private readonly head = document.createElement('span');
  private readonly list = document.createElement('dl');
  private readonly size: ResizeObserver;
  private height = 150;
  // Null: hidden.
  private at: { readonly pointer: Point; readonly room: Box; readonly beside: Beside | null } | null = null; // prettier-ignore
  private transform = '';

  constructor(element: HTMLElement) {
    this.element = element;
    const top = document.createElement('div');
    top.className = 'tip-head';
    this.title.className = 'mono';
    top.append(this.title, this.head);
    element.replaceChildren(top, this.list);
    // Reading the height after each change would make the browser compute the layout twice.
    this.size = new ResizeObserver(() => {
      if (element.offsetHeight === 0) return; // hidden
      this.height = element.offsetHeight;
      this.place();
    });
    this.size.observe(element, { box: 'border-box' });
  }

  destroy(): void {
    this.size.disconnect();
  }

  hide(): void {
    this.at = null;
    this.element.hidden = true;
  }

  // `pointer`: in the element that contains the tooltip, whose size is `room`.
  show(
    { title, head, lines }: TipText,
    pointer: Point,
    room: Box,
    beside: Beside | null = null,
  ): void {
    write(this.title, title);
    write(this.head, head);
    const { children } = this.list;
    while (children.length > 2 * lines.length) this.list.lastElementChild?.remove();
    for (let i = children.length / 2; i < lines.length; i += 1)
      this.list.append(document.createElement('dt'), document.createElement('dd'));
    lines.forEach(([name, value], i) => {
      write(children[2 * i], name);
      write(children[2 * i + 1], value);
    });
    this.at = { pointer, room, beside };
    this.element.hidden = false;
    this.place();
  }

  private place(): void {
    if (!this.at) return;
    const { pointer, room, beside } = this.at;
    const { x, y } = tipPlace(pointer, this.height, room, beside);
    const transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
    if (transform === this.transform) return;
    this.transform = transform;
    this.element.style.transform = transform;
  }
}

// Right or left of the pointer and of what is beside it, else below or above that, else where most of it
// is visible. It never covers what is beside the pointer.
export function tipPlace(pointer: Point, height: number, room: Box, beside: Beside | null): Point {
  const x = tipLeft(pointer.x, room.w);
  const y = tipTop(pointer.y, height, room.h);
  if (!beside) return { x, y };
  const places: readonly Point[] = [
    { x: Math.max(pointer.x, beside.x + beside.w) + GAP, y },
    { x: Math.min(pointer.x, beside.x) - TIP_ROOM, y },
    { x, y: beside.y + beside.h + GAP },
    { x, y: beside.y - GAP - height },
  ];
  const hidden = (at: Point): number =>
    1 - (inside(at.x, WIDTH, room.w) * inside(at.y, height, room.h)) / (WIDTH * height);
  return places.toSorted((a, b) => hidden(a) - hidden(b))[0] ?? { x, y };
}

// How much of a length from a position is in the room.
const inside = (at: number, length: number, room: number): number =>
  Math.max(0, Math.min(at + length, room) - Math.max(at, 0));

// Right of the pointer, left of it if there is no room.
function tipLeft(x: number, room: number): number {
  return x + TIP_ROOM <= room ? x + GAP : Math.max(0, x - TIP_ROOM);
}

// Below the pointer, above it if there is no room, else where most of it is visible.
export function tipTop(y: number, height: number, room: number): number {
  if (y + GAP + height <= room) return y + GAP;
  const above = y - GAP - height;
  return above >= 0 ? above : Math.max(0, room - height);
}

function write(element: Element | undefined, text: string): void {
  if (element && element.textContent !== text) element.textContent = text;
}
