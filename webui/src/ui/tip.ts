// A tooltip beside the pointer. It moves with it, so it is updated directly, without JSX, and only
// where its text has changed.

interface Point {
  readonly x: number;
  readonly y: number;
}

// What the tooltip must not cover, beside the pointer.
export interface Beside {
  readonly x: number;
  readonly w: number;
}

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
    const left = tipLeft(pointer.x, room.w, beside);
    const top = tipTop(pointer.y, this.height, room.h);
    const transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    if (transform === this.transform) return;
    this.transform = transform;
    this.element.style.transform = transform;
  }
}

// Right of the pointer and of what is beside it, left of both if there is no room, else where most
// of it is visible.
export function tipLeft(x: number, room: number, beside: Beside | null): number {
  const right = Math.max(x, beside ? beside.x + beside.w : x) + GAP;
  if (right + WIDTH <= room) return right;
  const left = Math.min(x, beside?.x ?? x) - TIP_ROOM;
  return left >= 0 || !beside ? Math.max(0, left) : Math.max(0, room - WIDTH);
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
