// Which rows of a table are in view. The host element scrolls over a spacer. Browsers limit the height
// of an element (Chromium to 33 million pixels), so the spacer is at most MAX_HEIGHT: then a short
// scroll moves by exact rows, a long one (the scroll bar) by share.

export const ROW = 24; // pixels

const MAX_HEIGHT = 8_000_000;
const EDGE = 10_000; // pixels of exact scrolling that are kept at both ends

export class RowScroll {
  height = 0; // pixels of the rows in view
  top = 0; // the first row in view, with its fraction
  private seenTop = 0; // scrollTop that `top` belongs to
  private readonly host: Pick<HTMLElement, 'scrollTop'>;
  private readonly count: () => number;

  constructor(host: Pick<HTMLElement, 'scrollTop'>, count: () => number) {
    this.host = host;
    this.count = count;
  }

  // The number of rows in view, with its fraction.
  get visible(): number {
    return this.height / ROW;
  }

  // The height of the spacer.
  get spacer(): number {
    return Math.min(MAX_HEIGHT, this.count() * ROW);
  }

  toRow(top: number): void {
    this.top = Math.min(this.lastTop(), Math.max(0, top));
    this.placeBar();
  }

  // There may be fewer rows than before, or more room.
  clamp(): void {
    this.top = Math.min(this.top, this.lastTop());
  }

  // Scrolls the minimum distance that brings the row into view. Returns whether it scrolled.
  reveal(index: number): boolean {
    const whole = Math.max(1, Math.floor(this.visible));
    if (index < this.top) this.toRow(index);
    else if (index + 1 > this.top + this.visible) this.toRow(index + 1 - whole);
    else return false;
    return true;
  }

  // The host was scrolled.
  scrolled(): void {
    const at = this.host.scrollTop;
    const moved = at - this.seenTop;
    if (moved === 0) return;
    const isShort = Math.abs(moved) <= 2 * this.height;
    const share = this.room() > 0 ? at / this.room() : 0;
    const top = !this.isScaled()
      ? at / ROW
      : isShort
        ? this.top + moved / ROW
        : share * this.lastTop();
    this.top = Math.min(this.lastTop(), Math.max(0, top));
    this.seenTop = at;
    const isAtEnd = at <= 0 || at >= this.room();
    if (isAtEnd && isShort) this.settled();
  }

  // Scrolling has ended.
  settled(): void {
    if (this.isScaled()) this.placeBar();
  }

  private lastTop(): number {
    return Math.max(0, this.count() - this.visible);
  }

  private isScaled(): boolean {
    return this.count() * ROW > MAX_HEIGHT;
  }

  private room(): number {
    return Math.max(0, this.spacer - this.height);
  }

  // Moves the scroll bar to where `top` is.
  private placeBar(): void {
    const [room, last] = [this.room(), this.lastTop()];
    let at = this.top * ROW;
    if (this.isScaled()) {
      at = Math.max((this.top / last) * room, Math.min(at, EDGE));
      at = Math.min(at, room - Math.min((last - this.top) * ROW, EDGE));
    }
    if (Math.abs(this.host.scrollTop - at) >= 1) this.host.scrollTop = at;
    this.seenTop = this.host.scrollTop;
  }
}
