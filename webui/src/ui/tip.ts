// A tooltip beside the pointer. It moves with it, so it is updated directly, without JSX, and only
// where its text has changed.

interface Point {
  readonly x: number;
  readonly y: number;
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

export class Tip {
  private readonly element: HTMLElement;
  private readonly title = document.createElement('b');
  private readonly head = document.createElement('span');
  private readonly list = document.createElement('dl');
  private readonly size: ResizeObserver;
  private height = 150;
  private at: { readonly pointer: Point; readonly room: Box } | null = null; // null: hidden
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
  show({ title, head, lines }: TipText, pointer: Point, room: Box): void {
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
    this.at = { pointer, room };
    this.element.hidden = false;
    this.place();
  }

  private place(): void {
    if (!this.at) return;
    const { pointer, room } = this.at;
    const { x, y } = pointer;
    const left = x + GAP + WIDTH > room.w ? Math.max(0, x - WIDTH - GAP) : x + GAP;
    const top = tipTop(y, this.height, room.h);
    const transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    if (transform === this.transform) return;
    this.transform = transform;
    this.element.style.transform = transform;
  }
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
